#pragma once

#include "driver/parallel/step_place.h"
#include "driver/parallel/windows.h"
#include "host/context.h"
#include "ir/graph.h"
#include "runtime/executable.h"

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace tenon {

/// A graph of fixed extents, compiled, that reads and writes memory of its caller's: of the place
/// it runs at, inputs also the processor's.
class StageProgram {
 public:
  /// `place` outlives it.
  StageProgram(const Graph& graph, int thread_count, const StepPlace& place);

  /// Calls `when_made` as soon as nothing more will be written to an output, in an order that
  /// is the same in every run, with the output's number.
  using WhenMade = std::function<void(std::size_t output)>;
  /// Called with numbers of steps that go up, before the step of that number begins; where steps
  /// are not seen one by one (`has_steps`), only once, before all.
  using BeforeStep = std::function<void(std::size_t step)>;
  void run(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
           const WhenMade& when_made, const BeforeStep& before_step);

  const Program& program() const { return model_ ? model_->program() : host_model_->program(); }
  std::uint64_t arena_bytes() const { return arena_bytes_; }
  bool has_steps() const { return has_steps_; }
  /// Gives the arena back until the next run.
  void rest();
  /// The steps that read an input, in their order; the first that touches an output, and the last.
  std::vector<std::size_t> steps_reading(std::size_t input) const;
  StepInterval steps_making(std::size_t output) const;
  /// Outputs in the order in which they are made.
  const std::vector<std::size_t>& making_order() const { return order_; }

 private:
  void make_context();
  void find_order();
  std::vector<std::size_t> steps_with(std::uint32_t buffer) const;
  void run_on_host(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs);

  const StepPlace& place_;
  int thread_count_;
  std::uint64_t arena_bytes_ = 0;
  bool has_steps_ = false;
  std::vector<TensorType> input_types_;
  std::vector<std::size_t> order_, last_step_;  // by place in the order; by output
  // One of the two, as the program is kernels alone or has other steps.
  std::shared_ptr<const Executable> model_;
  std::unique_ptr<Context> context_;
  std::shared_ptr<const HostExecutable> host_model_;
  std::unique_ptr<HostContext> host_;
};

}  // namespace tenon
