// Tenon from C++20: a thin wrapper of the C interface (tenon/tenon.h). Handles are RAII objects,
// errors are exceptions, tensors are views of the caller's memory.
//
//     tenon::Program program = tenon::Model("model.onnx").compile();
//     tenon::Context context = program.context({.threads = 2});
//     std::vector<float> x(1 * 3 * 224 * 224), y(1000);
//     context.run({tenon::Tensor(std::span(x), {1, 3, 224, 224})},
//                 {tenon::Tensor(std::span(y), {1, 1000})});
#ifndef TENON_TENON_HPP
#define TENON_TENON_HPP

#include "tenon/tenon.h"
#include "tenon/tensor.hpp"

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace tenon {
inline namespace v1 {

struct Port {
  std::string name, type;
  /// -1: symbolic or data-dependent.
  Shape shape;
  tenon_dtype dtype;
};

struct ContextOptions {
  /// 0: all available threads.
  int threads = 0;
};

/// Runs a program, one thread at a time.
class Context {
 public:
  /// Writes to the given outputs; outputs without memory get the context's, valid until its next
  /// run.
  std::vector<Tensor> run(std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
    const std::vector<tenon_tensor> in = described(inputs);
    std::vector<tenon_tensor> out = described(outputs);
    check(tenon_context_run(handle_.get(), in.data(), in.size(), out.data(), out.size()));
    return given(out);
  }
  std::vector<Tensor> run(std::initializer_list<Tensor> inputs,
                          std::initializer_list<Tensor> outputs) {
    return run(std::span(inputs.begin(), inputs.size()),
               std::span(outputs.begin(), outputs.size()));
  }
  /// Returns all outputs in memory of the context, valid until its next run.
  std::vector<Tensor> run(std::span<const Tensor> inputs) {
    return run(inputs, std::vector<Tensor>(output_count_));
  }
  std::vector<Tensor> run(std::initializer_list<Tensor> inputs) {
    return run(std::span(inputs.begin(), inputs.size()));
  }
  /// Starts a run like tenon_context_start; outputs are defined after `finish`.
  std::vector<Tensor> start(std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
    const std::vector<tenon_tensor> in = described(inputs);
    std::vector<tenon_tensor> out = described(outputs);
    check(tenon_context_start(handle_.get(), in.data(), in.size(), out.data(), out.size()));
    return given(out);
  }
  std::vector<Tensor> start(std::initializer_list<Tensor> inputs,
                            std::initializer_list<Tensor> outputs) {
    return start(std::span(inputs.begin(), inputs.size()),
                 std::span(outputs.begin(), outputs.size()));
  }
  void finish() { check(tenon_context_finish(handle_.get())); }
  /// Returns the duration of each step as JSON.
  std::string watch(std::span<const Tensor> inputs) {
    const std::vector<tenon_tensor> in = described(inputs);
    std::vector<tenon_tensor> out(output_count_);
    char* json = nullptr;
    check(tenon_context_watch(handle_.get(), in.data(), in.size(), out.data(), out.size(), &json));
    return take(json);
  }
  /// Returns the value of a state before the next run, in memory of the context that is valid until
  /// the state is read again.
  Tensor read_state(const std::string& name) const {
    tenon_tensor elements{};
    check(tenon_context_read_state(handle_.get(), name.c_str(), &elements));
    return given(std::span(&elements, 1)).front();
  }
  void write_state(const std::string& name, const Tensor& elements) {
    const tenon_tensor described = elements.described();
    check(tenon_context_write_state(handle_.get(), name.c_str(), &described));
  }
  /// Keeps a state in memory of the caller, which must outlive the context.
  void bind_state(const std::string& name, const Tensor& elements) {
    const tenon_tensor described = elements.described();
    check(tenon_context_bind_state(handle_.get(), name.c_str(), &described));
  }
  /// Gives all states their initial values.
  void reset_states() { check(tenon_context_reset_states(handle_.get())); }
  /// Returns a context of the same program with the present states, which are copied on write.
  Context fork() const {
    tenon_context made = nullptr;
    check(tenon_context_fork(handle_.get(), &made));
    return {made, output_count_};
  }
  tenon_context handle() const { return handle_.get(); }

 private:
  friend class Program;
  Context(tenon_context handle, std::size_t output_count)
      : handle_(handle), output_count_(output_count) {}
  Owned<tenon_context, tenon_context_free> handle_;
  std::size_t output_count_;
};

/// A compiled model; any number of threads may create contexts of it.
class Program {
 public:
  /// Loads FILE.tnn, which is machine code: as trusted as an executable.
  explicit Program(const std::string& path) {
    tenon_program handle = nullptr;
    check(tenon_program_load(path.c_str(), &handle));
    handle_ = Owned<tenon_program, tenon_program_free>(handle);
  }
  explicit Program(tenon_program handle) : handle_(handle) {}

  std::vector<Port> inputs() const { return ports(TENON_INPUT); }
  std::vector<Port> outputs() const { return ports(TENON_OUTPUT); }
  std::vector<Port> weights() const { return ports(TENON_WEIGHT); }
  std::vector<Port> states() const { return ports(TENON_STATE); }
  /// Applies to contexts created from now on.
  void set_weight(const std::string& name, const Tensor& elements) {
    const tenon_tensor described = elements.described();
    check(tenon_program_set_weight(handle_.get(), name.c_str(), &described));
  }
  Context context(const ContextOptions& options = {}) const {
    tenon_context made = nullptr;
    const std::string json = "{\"threads\": " + std::to_string(options.threads) + "}";
    check(tenon_context_create(handle_.get(), json.c_str(), &made));
    std::size_t count = 0;
    tenon_program_port_count(handle_.get(), TENON_OUTPUT, &count);
    return {made, count};
  }
  /// JSON.
  std::string describe() const {
    char* json = nullptr;
    check(tenon_program_describe(handle_.get(), &json));
    return take(json);
  }
  tenon_program handle() const { return handle_.get(); }

 private:
  std::vector<Port> ports(tenon_port_kind kind) const {
    std::size_t count = 0;
    check(tenon_program_port_count(handle_.get(), kind, &count));
    std::vector<Port> list;
    for (std::size_t k = 0; k < count; ++k) {
      tenon_port port{};
      check(tenon_program_port(handle_.get(), kind, k, &port));
      const std::int32_t rank = port.rank < 0 ? 0 : port.rank;
      list.push_back({port.name, port.type, Shape(port.shape, port.shape + rank),
                      static_cast<tenon_dtype>(port.dtype)});
    }
    return list;
  }
  Owned<tenon_program, tenon_program_free> handle_;
};

#ifndef TENON_RUNTIME_ONLY  // the rest needs libtenon

/// An imported network; any number of threads may use it.
class Model {
 public:
  /// A file of any format, or "zoo:resnet50?batch=N".
  explicit Model(const std::string& source) {
    tenon_model handle = nullptr;
    check(tenon_model_open(source.c_str(), &handle));
    handle_ = Owned<tenon_model, tenon_model_free>(handle);
  }
  explicit Model(std::span<const std::byte> bytes) {
    tenon_model handle = nullptr;
    check(tenon_model_parse(bytes.data(), bytes.size(), &handle));
    handle_ = Owned<tenon_model, tenon_model_free>(handle);
  }
  explicit Model(tenon_model handle) : handle_(handle) {}

  /// Options of tenon_model_compile, as JSON.
  Program compile(const std::string& options = "") const {
    tenon_program program = nullptr;
    check(tenon_model_compile(handle_.get(), options.c_str(), &program));
    return Program(program);
  }
  /// Options of tenon_model_transform, as JSON.
  Model transform(const std::string& options = "") const {
    tenon_model result = nullptr;
    check(tenon_model_transform(handle_.get(), options.c_str(), &result));
    return Model(result);
  }
  void save(const std::string& format, const std::string& path) const {
    check(tenon_model_save(handle_.get(), format.c_str(), path.c_str()));
  }
  /// JSON.
  std::string describe() const {
    char* json = nullptr;
    check(tenon_model_describe(handle_.get(), &json));
    return take(json);
  }
  tenon_model handle() const { return handle_.get(); }

 private:
  Owned<tenon_model, tenon_model_free> handle_;
};

/// Saves FILE.tnn or FILE.so. `options` as for tenon_program_save.
inline void save(const Program& program, const std::string& path, const std::string& options = "") {
  check(tenon_program_save(program.handle(), path.c_str(), options.c_str()));
}

/// A training step and its states; one thread at a time.
class Trainer {
 public:
  /// Options of tenon_trainer_create, as JSON.
  explicit Trainer(const Model& model, const std::string& options = "") {
    tenon_trainer handle = nullptr;
    check(tenon_trainer_create(model.handle(), options.c_str(), &handle));
    handle_ = Owned<tenon_trainer, tenon_trainer_free>(handle);
  }
  /// Runs a step on the batch: inputs in order, then the target. Returns `output_count` outputs,
  /// the loss first, in memory that is valid until the next step.
  std::vector<Tensor> step(std::span<const Tensor> batch, std::size_t output_count) {
    const std::vector<tenon_tensor> in = described(batch);
    std::vector<tenon_tensor> out(output_count);
    check(tenon_trainer_step(handle_.get(), in.data(), in.size(), out.data(), out.size()));
    return given(out);
  }
  Tensor state(const std::string& name) const {
    tenon_tensor elements{};
    check(tenon_trainer_state(handle_.get(), name.c_str(), &elements));
    return given(std::span(&elements, 1)).front();
  }
  void set_state(const std::string& name, const Tensor& elements) {
    const tenon_tensor described = elements.described();
    check(tenon_trainer_set_state(handle_.get(), name.c_str(), &described));
  }
  Model model() const {
    tenon_model made = nullptr;
    check(tenon_trainer_model(handle_.get(), &made));
    return Model(made);
  }
  void save(const std::string& folder) const {
    check(tenon_trainer_save(handle_.get(), folder.c_str()));
  }
  void restore(const std::string& folder) {
    check(tenon_trainer_restore(handle_.get(), folder.c_str()));
  }
  /// JSON.
  std::string describe() const {
    char* json = nullptr;
    check(tenon_trainer_describe(handle_.get(), &json));
    return take(json);
  }

 private:
  Owned<tenon_trainer, tenon_trainer_free> handle_;
};

#endif  // TENON_RUNTIME_ONLY

}  // namespace v1
}  // namespace tenon

#endif
