#include "planning/step_within_budget.h"

#include "base/error.h"
#include "base/text.h"
#include "models/rebatch.h"

namespace tenon::planning {
namespace {

bool is_share(const BudgetRequest& request) { return trim(request.budget).ends_with('%'); }

}  // namespace

void require_budget(const BudgetRequest& request, bool is_training) {
  if (request.budget.empty() && (request.may_swap || request.may_split)) {
    throw Error(concat(request.may_swap ? "--swap" : "--split", " is of a budget"),
                ErrorKind::Usage)
        .hint("give --budget too");
  }
  if (request.may_split && !is_training) {
    throw Error("the batch of a training step is what --split splits", ErrorKind::Usage)
        .hint("give --train, or leave --split out");
  }
}

SplitStep split_of(Graph model, passes::TrainOptions options) {
  SplitStep split;
  const std::optional<Dim> batch = models::batch_of(model);
  if (batch && batch->is_constant()) split.batch = batch->constant();
  split.in_micro_batches = [model = std::move(model), options = std::move(options),
                            batch = split.batch](std::int64_t micro_batches) {
    passes::require_samples_apart(model, options);
    passes::TrainOptions of_micro_batch = options;
    of_micro_batch.micro_batches = micro_batches;
    return passes::accumulated(
        passes::train(models::rebatched(model, batch / micro_batches), of_micro_batch),
        passes::train(model, options), micro_batches);
  };
  return split;
}

SplitStep with_recurrent_states(SplitStep split, bool is_for_device) {
  if (!split.in_micro_batches) return split;
  split.in_micro_batches = [whole = std::move(split.in_micro_batches),
                            is_for_device](std::int64_t micro_batches) {
    return passes::with_recurrent_states(whole(micro_batches), is_for_device);
  };
  return split;
}

StepWithinBudget step_within_budget(passes::StatefulGraph whole, const CompileStep& compile,
                                    const SplitStep& split, const BudgetRequest& request) {
  std::optional<StepWithinBudget> best;
  std::optional<Error> refusal;
  std::uint64_t plain_arena_bytes = 0;
  BudgetRequest asked = request;
  // Returns whether more parts may be better: if these are slower, more parts are slower too.
  const auto consider = [&](passes::StatefulGraph step, std::int64_t micro_batches) {
    codegen::Compiled compiled = compile(step.graph, true);
    if (micro_batches == 1) {
      plain_arena_bytes = compiled.program.arena_bytes;
      // A percentage refers to the arena of the whole batch.
      if (is_share(request) && !request.arena_bytes)
        asked.arena_bytes = arena_budget(request.budget, plain_arena_bytes, 0);
    }
    try {
      auto planner =
          planned_within(std::move(compiled.program), std::move(compiled.step_problem), asked);
      planner->set_micro_batches(micro_batches, plain_arena_bytes);
      const bool is_free = planner->report().extra_time() <= 0;
      const bool is_better = !best || planner->report().seconds < best->planner->report().seconds;
      if (is_better) best = StepWithinBudget{std::move(step), std::move(planner)};
      return is_better && !is_free;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::OutOfMemory) throw;
      if (!best) refusal = error;
      return true;
    }
  };
  bool goes_on = consider(std::move(whole), 1) && request.may_split && split.in_micro_batches;
  for (std::int64_t micro_batches = 2; goes_on && micro_batches <= split.batch; ++micro_batches) {
    if (split.batch % micro_batches != 0) continue;
    std::optional<passes::StatefulGraph> step;
    try {
      step = split.in_micro_batches(micro_batches);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Unsupported) throw;
      if (!best) refusal->hint(error.summary(), error.has_place() ? ": " : "", error.place());
      break;
    }
    goes_on = consider(*std::move(step), micro_batches);
  }
  if (!best) throw *refusal;
  return *std::move(best);
}

}  // namespace tenon::planning
