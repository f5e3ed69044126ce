#include "runtime/executor_run.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tenon::inline runtime {
namespace {

constexpr std::uint64_t kOutputAlignment = 64;

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kOutputAlignment - 1) / kOutputAlignment * kOutputAlignment;
}

}  // namespace

// Extents that only this state carries are unknown before its first run.
std::vector<std::int64_t> Executor::Run::shape_of_zeros(std::size_t state,
                                                        const Shapes& shapes) const {
  const Program& p = program();
  const auto extent_of = [&](std::uint32_t symbol) -> std::optional<std::int64_t> {
    for (std::size_t k = 0; k < p.inputs.size(); ++k) {
      const std::vector<Extent>& dims = p.buffers[p.inputs[k]].dims;
      for (std::size_t axis = 0; axis < std::min(dims.size(), shapes[k].size()); ++axis) {
        if (dims[axis] == Extent::symbol(symbol)) return shapes[k][axis];
      }
    }
    return std::nullopt;
  };
  std::vector<std::int64_t> symbols(p.symbols.size(), 0), shape;
  std::vector<bool> is_known(p.symbols.size(), false);
  for (std::uint32_t k = 0; k < p.symbols.size(); ++k) {
    const auto extent = extent_of(k);
    is_known[k] = extent.has_value();
    symbols[k] = extent.value_or(0);
  }
  for (const Extent& dim : states.port(state).dims) {
    const bool is_resolved = std::ranges::all_of(dim.steps(), [&](const Extent::Instruction& step) {
      return step.op != Extent::Op::Symbol || is_known[static_cast<std::size_t>(step.number)];
    });
    if (!is_resolved) {
      throw Error(concat("state '", states.port(state).name, "' has no shape before the first run"),
                  ErrorKind::Usage)
          .at("program '", p.name, "'")
          .hint("write it first");
    }
    shape.push_back(dim.value(symbols));
  }
  return shape;
}

bool Executor::Run::fits_states() const {
  for (std::size_t k = 0; k < states.count(); ++k) {
    const StateValues::Value& value = states.value(k);
    if (!value.memory || value.shape != bound[states.described(k).input]) return false;
  }
  return true;
}

// Binds the given shapes and those of the states, unless they are bound.
void Executor::Run::bind() {
  if (is_bound && fits_states()) return;
  Shapes shapes = given;
  shapes.resize(program().inputs.size());
  for (std::size_t k = 0; k < states.count(); ++k) {
    const Program::State& state = states.described(k);
    shapes[state.input] = states.value(k).shape;
  }
  for (std::size_t k = 0; k < states.count(); ++k) {
    const Program::State& state = states.described(k);
    if (states.value(k).memory) continue;
    states.start(k,
                 state.starts_with_zeros ? shape_of_zeros(k, shapes) : std::vector<std::int64_t>());
    shapes[state.input] = states.value(k).shape;
  }
  is_bound = false;
  if (!has_host_steps) runner->bind(shapes);  // host steps bind the shapes of each run
  bound = std::move(shapes);
  is_bound = true;
}

void Executor::Run::begin(std::span<const void* const> inputs, std::span<void* const> outputs) {
  const Program& p = program();
  if (!runner) open();
  bind();
  TENON_ASSERT(inputs.size() == p.inputs.size() && outputs.size() == p.outputs.size(),
               "a place for each input and output");
  for (std::size_t k = 0; k < p.inputs.size(); ++k) {
    runner->set_address(p.inputs[k], const_cast<void*>(inputs[k]));  // NOLINT: only read
  }
  for (std::size_t k = 0; k < p.outputs.size(); ++k) runner->set_address(p.outputs[k], outputs[k]);
  for (std::size_t k = 0; k < states.count(); ++k) {
    const Program::State& state = states.described(k);
    const std::uint32_t output = p.outputs[state.output];
    std::byte* next = states.next(k, runner->output_shapes[state.output], runner->bytes_of(output));
    runner->set_address(p.inputs[state.input], states.value(k).memory.get());
    runner->set_address(output, next);
  }
}

void Executor::Run::end() {
  for (std::size_t k = 0; k < states.count(); ++k)
    states.advance(k, runner->output_shapes[states.described(k).output]);
}

void Executor::Run::run_kernels(const Observers& observers) {
  if (observers.events != nullptr) {
    runner->run(0, watch);
    observers.events->add(watch);
  } else if (observers.after_step) {
    runner->run(0, [&](std::size_t step) { observers.after_step(*runner, step); });
  } else {
    runner->run(0);
  }
}

std::vector<PortValue> Executor::Run::run_host(std::span<const PortValue> inputs,
                                               const Observers& observers) {
  std::vector<PortValue> values(inputs.begin(), inputs.end());
  for (std::size_t k = 0; k < states.count(); ++k) {
    states.own(k);
    const StateValues::Value& value = states.value(k);
    values[states.described(k).input] = {value.shape, value.memory.get(), value.memory};
  }
  std::vector<PortValue> results = host->run(values, observers);
  const auto is_of_caller = [&](const std::byte* data) {
    return std::ranges::any_of(inputs, [&](const PortValue& input) { return input.data == data; });
  };
  for (std::size_t k = 0; k < states.count(); ++k) {
    const PortValue& result = results[states.described(k).output];
    const StateValues::Value& now = states.value(k);
    if (result.data == now.memory.get() && result.shape == now.shape) continue;
    if (is_of_caller(result.data)) {
      states.write(k, result.shape, result.data);
      continue;
    }
    std::uint64_t bytes = states.port(k).element_bytes;
    for (const std::int64_t extent : result.shape) bytes *= static_cast<std::uint64_t>(extent);
    auto* data = const_cast<std::byte*>(result.data);  // NOLINT: copied before it is written
    states.advance(k, {result.shape, {result.owner, data}, bytes});
  }
  return results;
}

// Memory of the device is copied: host steps take their operands from host memory.
void Executor::Run::run_host(std::span<const void* const> inputs, std::span<void* const> outputs,
                             const Observers& observers) {
  const Program& p = program();
  if (!runner) open();
  bind();
  const StateMemory* remote = nullptr;
  std::shared_ptr<const StateMemory> of_device;
  if (model->device() != nullptr) {
    of_device = model->device()->state_memory();
    remote = of_device.get();
  }
  std::vector<PortValue> values;
  for (std::size_t k = 0; k < p.inputs.size(); ++k) {
    PortValue& value = values.emplace_back();
    value.shape = bound[k];
    value.data = static_cast<const std::byte*>(inputs[k]);
    if (remote == nullptr || inputs[k] == nullptr || !remote->is_remote(inputs[k])) continue;
    std::uint64_t bytes = p.buffers[p.inputs[k]].element_bytes;
    for (const std::int64_t extent : value.shape) bytes *= static_cast<std::uint64_t>(extent);
    const std::shared_ptr<std::byte> copy = StateMemory().allocate(bytes);
    remote->copy(copy.get(), inputs[k], bytes);
    value.data = copy.get();
    value.owner = copy;
  }
  const std::vector<PortValue> results = run_host(values, observers);
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (outputs[k] == nullptr) continue;
    std::uint64_t bytes = p.buffers[p.outputs[k]].element_bytes;
    for (const std::int64_t extent : results[k].shape) bytes *= static_cast<std::uint64_t>(extent);
    if (remote != nullptr) {
      remote->copy(outputs[k], results[k].data, bytes);
    } else if (bytes > 0) {
      std::memmove(outputs[k], results[k].data, bytes);
    }
  }
}

// One block for all outputs, so that the system can use huge pages: the page faults of thousands of
// small pages take longer than many runs.
void Executor::Run::place_outputs(std::span<PortValue> values) {
  const Program& p = program();
  std::uint64_t total = 0;
  const auto needs_memory = [&](std::size_t k) {
    return values[k].data == nullptr && !is_state_output[k];
  };
  for (std::size_t k = 0; k < values.size(); ++k) {
    values[k].shape = runner->output_shapes[k];
    if (needs_memory(k)) total += aligned(runner->bytes_of(p.outputs[k]));
  }
  if (!outputs || outputs.use_count() > 1 || outputs->bytes() < total) {
    outputs = std::make_shared<Memory>();
    if (total > 0 && !outputs->allocate(total)) {
      const auto largest = std::ranges::max_element(
          p.outputs, {}, [&](std::uint32_t id) { return runner->bytes_of(id); });
      throw Error("no memory for the outputs", ErrorKind::OutOfMemory)
          .at("output '", p.buffers[*largest].name, "', the largest")
          .expected(format_bytes(total));
    }
  }
  std::uint64_t offset = 0;
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (!needs_memory(k)) continue;
    values[k].data = outputs->data() + offset;
    values[k].owner = outputs;
    offset += aligned(runner->bytes_of(p.outputs[k]));
  }
}

}  // namespace tenon::inline runtime
