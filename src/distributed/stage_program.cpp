#include "distributed/stage_program.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tenon::distributed {

StageProgram::StageProgram(const Graph& graph, int thread_count, const StepMemory& place)
    : thread_count_(thread_count) {
  for (ValueId input : graph.inputs()) input_types_.push_back(graph.value(input).type.tensor());
  // After the last step, if no step is known to write it.
  last_step_.assign(graph.outputs().size(), std::numeric_limits<std::size_t>::max());
  model_ = place.load(place.compile(graph));
  make_executor();
  find_order();
}

void StageProgram::make_executor() {
  executor_ = std::make_unique<Executor>(model_, thread_count_);
  std::vector<Shape> shapes;
  for (const TensorType& type : input_types_) shapes.push_back(constants(type.dims));
  executor_->bind(shapes);
  arena_bytes_ = executor_->arena_bytes();
  has_steps_ = program().is_kernel_only() && !executor_->is_on_device();
}

void StageProgram::rest() { executor_.reset(); }

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
  if (!executor_) make_executor();
  std::size_t notified = 0;
  before_step(has_steps() ? 0 : program().steps.size());
  const std::vector<const void*> sources(inputs.begin(), inputs.end());
  const std::vector<void*> targets(outputs.begin(), outputs.end());
  const auto look = [&](std::size_t step) {
    while (notified < order_.size() && last_step_[order_[notified]] <= step)
      when_made(order_[notified++]);
    if (has_steps()) before_step(step + 1);
  };
  Observers observers;
  if (has_steps()) {
    observers.after_step = [&](const KernelRunner&, std::size_t step) { look(step); };
  } else if (executor_->is_on_device()) {
    std::vector<std::size_t> marks;
    for (std::size_t k : order_) {
      const bool is_new = marks.empty() || marks.back() != last_step_[k];
      if (is_new && last_step_[k] < program().steps.size()) marks.push_back(last_step_[k]);
    }
    executor_->call_after(std::move(marks), look);
  }
  executor_->run(sources, targets, observers);
  while (notified < order_.size()) when_made(order_[notified++]);
}

}  // namespace tenon::distributed
