#include "base/error.h"
#include "embed/json_text.h"
#include "embed/loaded_program.h"
#include "embed/tensor.h"

#include <algorithm>

namespace tenon::embed {
namespace {

void require_fits(const tenon_tensor& elements, const ProgramPort& state, const std::string& what) {
  require_usable(elements, what);
  const std::span<const std::int64_t> shape = shape_of(elements, what);
  const bool fits = elements.dtype == state.dtype &&
                    std::ranges::equal(shape, state.shape, [](std::int64_t a, std::int64_t b) {
                      return a == b || b < 0;  // symbolic
                    });
  if (fits) return;
  throw Error(concat(what, " does not fit"), ErrorKind::Usage)
      .expected(state.type)
      .got(type_text(elements));
}

std::vector<std::int64_t> shape_vector(const tenon_tensor& tensor, const std::string& name) {
  const std::span<const std::int64_t> shape = shape_of(tensor, name);
  return {shape.begin(), shape.end()};
}

}  // namespace

RunContext::RunContext(std::shared_ptr<const LoadedProgram> program, int threads)
    : program_(std::move(program)), executor_(program_->model(), threads) {}

std::string RunContext::describe() const {
  return JsonObject()
      .add("threads", executor_.thread_count())
      .add("arena_bytes", executor_.arena_bytes())
      .add("scratch_bytes", executor_.scratch_bytes())
      .add("state_bytes", executor_.states().bytes())
      .text();
}

void RunContext::require_counts(std::size_t inputs, std::size_t outputs) const {
  if (inputs != loaded().ports(TENON_INPUT).size()) {
    throw Error("the program takes another number of inputs", ErrorKind::Usage)
        .expected(loaded().ports(TENON_INPUT).size())
        .got(inputs);
  }
  if (outputs != loaded().ports(TENON_OUTPUT).size()) {
    throw Error("the program gives another number of outputs", ErrorKind::Usage)
        .expected(loaded().ports(TENON_OUTPUT).size())
        .got(outputs);
  }
}

void RunContext::share_states(RunContext& from) {
  const ExecutorUse use(from.is_in_use_);
  executor_.share_states(from.executor_);
}

void RunContext::read_state(const std::string& name, tenon_tensor& elements) {
  const ExecutorUse use(is_in_use_);
  const std::size_t state = executor_.find_state(name);
  const StateValues::Value& value = executor_.state(state);
  const ProgramPort& port = loaded().ports(TENON_STATE)[state];
  if (elements.data != nullptr) {
    const std::string what = concat("state '", name, "'");
    require_usable(elements, what);
    if (elements.dtype != port.dtype ||
        !std::ranges::equal(shape_of(elements, what), value.shape)) {
      throw Error(concat(what, " has another type than the given memory"), ErrorKind::Usage)
          .expected(type_text(name_of(port.dtype), value.shape))
          .got(type_text(elements));
    }
    executor_.states().read(value, elements.data);
    return;
  }
  ReadState& copy = read_[state];
  copy = {value.shape, StateMemory().allocate(value.bytes)};
  executor_.states().read(value, copy.memory.get());
  elements = {copy.memory.get(), copy.shape.data(), nullptr,
              static_cast<std::int32_t>(copy.shape.size()), port.dtype};
}

std::size_t RunContext::find_state(const std::string& name, const tenon_tensor& elements) const {
  const std::size_t state = executor_.find_state(name);
  require_fits(elements, loaded().ports(TENON_STATE)[state], concat("state '", name, "'"));
  return state;
}

void RunContext::write_state(const std::string& name, const tenon_tensor& elements) {
  const ExecutorUse use(is_in_use_);
  const std::size_t state = find_state(name, elements);
  executor_.write_state(state, shape_vector(elements, name), elements.data);
}

void RunContext::bind_state(const std::string& name, const tenon_tensor& elements) {
  const ExecutorUse use(is_in_use_);
  const std::size_t state = find_state(name, elements);
  if (executor_.states().memory().is_remote(elements.data) != executor_.is_on_device()) {
    throw Error(concat("state '", name, "' is in other memory than the program"), ErrorKind::Usage)
        .expected("memory of ", executor_.is_on_device() ? "the device" : "the host");
  }
  // A non-owning reference: the caller keeps the memory alive.
  std::shared_ptr<std::byte> memory(std::shared_ptr<void>(),
                                    static_cast<std::byte*>(elements.data));
  executor_.bind_state(state, shape_vector(elements, name), std::move(memory));
}

void RunContext::reset_states() {
  const ExecutorUse use(is_in_use_);
  executor_.reset_states();
}

}  // namespace tenon::embed
