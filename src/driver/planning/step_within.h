#pragma once

#include "driver/planning/budget.h"
#include "passes/train/train.h"

#include <functional>
#include <memory>
#include <optional>

namespace tenon {

/// How a training step is made in parts of its batch.
struct SplitStep {
  /// samples; parts divide it
  std::int64_t batch = 0;
  /// Throws Error (Unsupported) where the parts would not learn what the batch does.
  std::function<StatefulGraph(std::int64_t parts)> in_parts = {};
};
/// Of a model for a batch that is known.
SplitStep split_of(Graph model, TrainOptions options);

/// A step and the planner that keeps its memory within a budget.
struct StepWithin {
  /// with inputs, outputs and states as it was given, perhaps in parts
  StatefulGraph step;
  std::unique_ptr<BudgetPlanner> planner;
};

/// Throws Error (Usage) where options of a budget are given without one, or the batch of what is
/// not trained is to be split.
void require_budget(const BudgetRequest& request, bool is_training);

using CompileStep =
    std::function<Program(const Graph& graph, std::optional<codegen::StepProblem>* described)>;

/// Compiles a step and plans its memory. Where that takes time, or no plan was found, and the
/// request allows it: in ever more parts of its batch, of which the fastest is taken. Throws Error
/// (OutOfMemory) where nothing keeps the budget, with the reason why the batch cannot be split
/// where that would have been tried.
StepWithin step_within(StatefulGraph whole, const CompileStep& compile, const SplitStep& split,
                       const BudgetRequest& request);

}  // namespace tenon
