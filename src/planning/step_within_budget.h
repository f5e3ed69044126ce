#pragma once

#include "codegen/compile.h"
#include "passes/train/train.h"
#include "planning/budget.h"

#include <functional>
#include <memory>
#include <optional>

namespace tenon::planning {

/// Builder of a training step with gradient accumulation.
struct SplitStep {
  /// in samples; a multiple of the number of parts
  std::int64_t batch = 0;
  /// Throws Error (Unsupported) if accumulation would change the result.
  std::function<passes::StatefulGraph(std::int64_t micro_batches)> in_micro_batches = {};
};
/// Returns the builder for a model with a static batch.
SplitStep split_of(Graph model, passes::TrainOptions options);
/// Returns a builder of the same steps, prepared by `with_recurrent_states`.
SplitStep with_recurrent_states(SplitStep split, bool is_for_device);

/// A step and the planner that keeps its memory within a budget.
struct StepWithinBudget {
  /// with the given inputs, outputs and states, possibly in micro-batches
  passes::StatefulGraph step;
  std::unique_ptr<BudgetPlanner> planner;
};

/// Throws Error (Usage) if options of a budget are given without one, or if the batch of an
/// inference is to be split.
void require_budget(const BudgetRequest& request, bool is_training);

/// Compiles a step; fills `Compiled::step_problem` if `describes`.
using CompileStep = std::function<codegen::Compiled(const Graph& graph, bool describes)>;

/// Compiles a step and plans its memory. If the plan costs time or does not exist, and the request
/// permits it, tries growing numbers of micro-batches and takes the fastest. Throws Error
/// (OutOfMemory) if no plan fits the budget, with the reason why the batch cannot be split if that
/// was permitted.
StepWithinBudget step_within_budget(passes::StatefulGraph whole, const CompileStep& compile,
                                    const SplitStep& split, const BudgetRequest& request);

}  // namespace tenon::planning
