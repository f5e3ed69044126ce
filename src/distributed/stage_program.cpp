#include "distributed/stage_program.h"

#include "runtime/kernel_runner.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tenon::distributed {

StageProgram::StageProgram(const Graph& graph, int thread_count, const StepMemory& place)
    : place_(place), thread_count_(thread_count) {
  for (ValueId input : graph.inputs()) input_types_.push_back(graph.value(input).type.tensor());
  // After the last step, if no step is known to write it.
  last_step_.assign(graph.outputs().size(), std::numeric_limits<std::size_t>::max());
  Program program = place.compile(graph);
  if (!program.is_kernel_only()) {
    host_model_ = std::make_shared<const HostExecutable>(std::move(program));
  } else {
    model_ = place.load(std::move(program));
  }
  make_context();
  find_order();
}

void StageProgram::make_context() {
  if (host_model_) {
    host_ = std::make_unique<HostContext>(host_model_, thread_count_);
    arena_bytes_ = host_->arena_bytes();
    return;
  }
  context_ = std::make_unique<Context>(model_, thread_count_);
  std::vector<Shape> shapes;
  for (const TensorType& type : input_types_) shapes.push_back(constants(type.dims));
  context_->bind(shapes);
  arena_bytes_ = context_->arena_bytes();
  has_steps_ = !context_->is_on_device();
}

void StageProgram::rest() {
  context_.reset();
  host_.reset();
}

std::vector<std::size_t> StageProgram::steps_with(std::uint32_t buffer) const {
  const Program& p = program();
  const auto bytes_of = [&](std::uint64_t one) {  // the buffer that a view refers to
    while (p.buffers[one].place == Program::BufferKind::View) one = p.buffers[one].offset;
    return one;
  };
  std::vector<std::size_t> steps;
  for (std::size_t step = 0; step < p.steps.size(); ++step) {
    const bool has_it = std::ranges::any_of(p.steps[step].buffers, [&](std::uint32_t one) {
      return bytes_of(one) == bytes_of(buffer);
    });
    if (has_it) steps.push_back(step);
  }
  return steps;
}

std::vector<std::size_t> StageProgram::steps_reading(std::size_t input) const {
  return steps_with(program().inputs[input]);
}

StepInterval StageProgram::steps_making(std::size_t output) const {
  const std::vector<std::size_t> steps = steps_with(program().outputs[output]);
  if (steps.empty()) return {0, program().steps.size()};
  return {steps.front(), steps.back()};
}

// An output is complete after the last step that reads or writes it.
void StageProgram::find_order() {
  if (model_) {
    for (std::size_t k = 0; k < last_step_.size(); ++k) {
      const std::vector<std::size_t> steps = steps_with(program().outputs[k]);
      if (!steps.empty()) last_step_[k] = steps.back();
    }
  }
  order_.resize(last_step_.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::ranges::stable_sort(order_, {}, [&](std::size_t k) { return last_step_[k]; });
}

void StageProgram::run(std::span<const std::byte* const> inputs,
                       std::span<std::byte* const> outputs, const WhenMade& when_made,
                       const BeforeStep& before_step) {
  if (!context_ && !host_) make_context();
  std::size_t notified = 0;
  before_step(has_steps() ? 0 : program().steps.size());
  if (host_) {
    run_on_host(inputs, outputs);
  } else {
    const std::vector<const void*> sources(inputs.begin(), inputs.end());
    const std::vector<void*> targets(outputs.begin(), outputs.end());
    const Context::Look look = [&](std::size_t step) {
      while (notified < order_.size() && last_step_[order_[notified]] <= step)
        when_made(order_[notified++]);
      if (has_steps()) before_step(step + 1);
    };
    if (context_->is_on_device()) {
      std::vector<std::size_t> marks;
      for (std::size_t k : order_) {
        const bool is_new = marks.empty() || marks.back() != last_step_[k];
        if (is_new && last_step_[k] < program().steps.size()) marks.push_back(last_step_[k]);
      }
      context_->runner().device()->call_after(std::move(marks), look);
      context_->run(sources, targets);
    } else {
      context_->run(sources, targets, look);
    }
  }
  while (notified < order_.size()) when_made(order_[notified++]);
}

// A program with host steps takes and returns tensors in host memory.
void StageProgram::run_on_host(std::span<const std::byte* const> inputs,
                               std::span<std::byte* const> outputs) {
  std::vector<Datum> given;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const TensorType& type = input_types_[k];
    if (!place_.is_device) {
      const auto bytes = static_cast<std::size_t>(byte_count(type).constant());
      given.emplace_back(
          Tensor::borrow(type.dtype, constants(type.dims), nullptr, {inputs[k], bytes}));
      continue;
    }
    Tensor tensor(type.dtype, constants(type.dims));
    place_.memory->copy(tensor.mutable_bytes().data(), inputs[k], tensor.byte_size());
    given.emplace_back(std::move(tensor));
  }
  const std::vector<Datum> made = host_->run(given);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const Tensor& tensor = made[k].tensor();
    place_.memory->copy(outputs[k], tensor.bytes().data(), tensor.byte_size());
  }
}

}  // namespace tenon::distributed
