// Fuzz target: the C interface. Any sequence of calls, with any handles, options and tensor
// descriptions, gives results or errors. Tensors point to memory of their size, because the
// interface cannot validate pointers.
#include "tenon/tenon.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr const char* kModel = R"(graph (x: f32[N, 3]) {
  w = constant f32[3, 2] [1, 2, 3, 4, 5, 6]
  y = matmul(x, w)
  return y
}
)";

// One program for all inputs: compilation is out of scope.
tenon_program program() {
  static const tenon_program made = [] {
    tenon_model model = nullptr;
    tenon_program compiled = nullptr;
    tenon_model_parse(kModel, std::strlen(kModel), &model);
    tenon_model_compile(model, "{\"swappable_weights\": true, \"untuned\": true}", &compiled);
    return compiled;
  }();
  return made;
}

class Caller {
 public:
  Caller(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  ~Caller() {
    for (const tenon_context context : contexts_) tenon_context_free(context);
    for (const tenon_value value : values_) tenon_value_free(value);
  }

  void run() {
    while (at_ < size_) step();
  }

 private:
  std::uint8_t byte() { return at_ < size_ ? data_[at_++] : 0; }
  std::uint64_t number() {
    std::uint64_t made = 0;
    for (int k = 0; k < 8; ++k) made = made << 8 | byte();
    return made;
  }
  std::string text() {
    std::string made;
    for (std::size_t left = byte() % 40; left > 0; --left) made += static_cast<char>(byte());
    return made;
  }
  // Returns a live handle, a freed handle, or any number.
  template <class Handle>
  Handle handle(const std::vector<Handle>& list) {
    const std::uint8_t which = byte();
    if (which >= 200 || list.empty()) return reinterpret_cast<Handle>(number());
    return list[which % list.size()];
  }
  tenon_tensor tensor() {
    const auto rank = static_cast<std::int32_t>(byte() % 6) - 1;
    shapes_.emplace_back();
    std::uint64_t count = 1;
    for (int k = 0; k < rank; ++k) {
      shapes_.back().push_back(static_cast<std::int64_t>(byte() % 8));
      count *= static_cast<std::uint64_t>(shapes_.back().back());
    }
    memories_.emplace_back(count * 16 + 16);
    const std::uint8_t kind = byte();
    if (kind % 16 == 0 && !shapes_.back().empty())
      shapes_.back().front() = static_cast<std::int64_t>(number());
    const bool has_wild_shape = kind % 16 == 0;
    void* memory = has_wild_shape || kind % 16 == 1 ? nullptr : memories_.back().data();
    return {memory, kind % 16 == 2 ? nullptr : shapes_.back().data(), nullptr, rank,
            kind % 4 == 3 ? static_cast<std::int32_t>(byte()) - 1 : TENON_F32};
  }

  void step() {
    switch (byte() % 12) {
      case 0: {
        tenon_context made = nullptr;
        if (tenon_context_create(program(), byte() % 2 == 0 ? text().c_str() : nullptr, &made) ==
            TENON_OK)
          contexts_.push_back(made);
        return;
      }
      case 1:
        tenon_context_free(handle(contexts_));
        return;
      case 2: {
        const tenon_tensor input = tensor();
        tenon_tensor output = byte() % 2 == 0 ? tenon_tensor{} : tensor();
        tenon_context_run(handle(contexts_), &input, byte() % 3, &output, byte() % 2);
        return;
      }
      case 3: {
        const tenon_tensor input = tensor();
        tenon_tensor output{};
        tenon_context_bind(handle(contexts_), &input, 1, &output, 1);
        return;
      }
      case 4: {
        const tenon_tensor given = tensor();
        tenon_value made = nullptr;
        if (tenon_value_tensor(&given, &made) == TENON_OK) values_.push_back(made);
        return;
      }
      case 5: {
        const tenon_value items[2] = {handle(values_), handle(values_)};
        tenon_value made = nullptr;
        if (tenon_value_sequence(items, byte() % 3, byte(), &made) == TENON_OK)
          values_.push_back(made);
        return;
      }
      case 6: {
        tenon_value made = nullptr;
        if (tenon_value_item(handle(values_), byte() % 4, &made) == TENON_OK)
          values_.push_back(made);
        return;
      }
      case 7: {
        tenon_value_kind kind{};
        tenon_tensor seen{};
        std::size_t count = 0;
        tenon_value_look(handle(values_), &kind, &seen, &count);
        return;
      }
      case 8: {
        const tenon_value given = handle(values_);
        tenon_value made = nullptr;
        if (tenon_context_run_values(handle(contexts_), &given, 1, &made, 1) == TENON_OK)
          values_.push_back(made);
        return;
      }
      case 9: {
        const tenon_tensor given = tensor();
        tenon_program_set_weight(program(), byte() % 2 == 0 ? "w" : text().c_str(), &given);
        return;
      }
      case 10: {
        tenon_port port{};
        tenon_program_port(program(), byte() % 5, byte() % 4, &port);
        return;
      }
      default:
        tenon_value_free(handle(values_));
        return;
    }
  }

  const std::uint8_t* data_;
  std::size_t size_, at_ = 0;
  std::vector<tenon_context> contexts_;
  std::vector<tenon_value> values_;
  std::vector<std::vector<std::int64_t>> shapes_;
  std::vector<std::vector<char>> memories_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Caller(data, size < 4096 ? size : 4096).run();
  return 0;
}
