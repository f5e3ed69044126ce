#pragma once

#include "distributed/step_memory.h"
#include "distributed/windows.h"
#include "ir/graph.h"
#include "runtime/executor.h"

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace tenon::distributed {

/// A compiled graph of static extents that reads and writes memory of its caller: memory of the
/// place it runs at; inputs may also be in host memory.
class StageProgram {
 public:
  StageProgram(const Graph& graph, int thread_count, const StepMemory& place);

  /// Calls `when_made` with the output's index as soon as an output is complete, in an order that
  /// is the same in every run.
  using WhenMade = std::function<void(std::size_t output)>;
  /// Called with increasing step indices before the step begins; without per-step callbacks
  /// (`has_steps`) only once, before all steps.
  using BeforeStep = std::function<void(std::size_t step)>;
  void run(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
           const WhenMade& when_made, const BeforeStep& before_step);

  const Program& program() const { return model_->program(); }
  std::uint64_t arena_bytes() const { return arena_bytes_; }
  bool has_steps() const { return has_steps_; }
  /// Releases the arena until the next run.
  void rest();
  /// Returns the steps that read an input, in order; and the first and last step that access an
  /// output.
  std::vector<std::size_t> steps_reading(std::size_t input) const;
  StepInterval steps_making(std::size_t output) const;
  /// Returns the outputs in the order of completion.
  const std::vector<std::size_t>& making_order() const { return order_; }

 private:
  void make_executor();
  void find_order();
  std::vector<std::size_t> steps_with(std::uint32_t buffer) const;

  int thread_count_;
  std::uint64_t arena_bytes_ = 0;
  bool has_steps_ = false;
  std::vector<TensorType> input_types_;
  std::vector<std::size_t> order_, last_step_;  // by position in the order; by output
  std::shared_ptr<const Executable> model_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace tenon::distributed
