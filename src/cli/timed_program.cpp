#include "cli/timed_program.h"

#include "codegen/overwritten_states.h"
#include "models/inputs.h"
#include "models/rebatch.h"
#include "train/options.h"

namespace tenon::cli {

TimedProgram timed_program(const models::ModelSource& source, std::optional<Program> given,
                           const TimedOptions& options, driver::CompileRequest request) {
  planning::require_budget(options.budget, !options.train.empty());
  TimedProgram made;
  if (given) {
    made.program = *std::move(given);
    return made;
  }
  const auto shapes = models::parse_shapes(options.shapes);
  Graph graph = models::reshaped(models::rebatched(source.graph(), options.batch), shapes);
  planning::SplitStep splitting;
  if (options.budget.may_split)
    splitting = train::split_training_step(graph, options.train, options.loss, shapes);
  const bool is_for_device = request.target.is_gpu();
  if (splitting.in_micro_batches && !is_for_device) {
    splitting.in_micro_batches = [in_micro_batches =
                                      splitting.in_micro_batches](std::int64_t micro_batches) {
      return passes::skip_nonfinite_updates(in_micro_batches(micro_batches));
    };
  }
  made.step = train::training_step(std::move(graph), options.train, options.loss, shapes);
  if (!is_for_device) {  // the step passes its states on
    made.step = passes::skip_nonfinite_updates(std::move(made.step));
    request.states = made.step.ports();
  }
  made.overwritten = request.states;
  const auto compiled = [&](const Graph& step, bool describes) -> codegen::Compiled {
    request.describes_step = describes;
    made.record = compile_tuned(step, request);
    // Keeps states that can be updated in place in every step that is tried.
    made.overwritten = codegen::common_states(std::move(made.overwritten), made.record.overwritten);
    return {std::move(made.record.program), {}, std::move(made.record.step_problem), {}};
  };
  if (options.budget.budget.empty()) {
    made.program = compiled(made.step.graph, false).program;
  } else {
    planning::StepWithinBudget within =
        planning::step_within_budget(std::move(made.step), compiled, splitting, options.budget);
    made.step = std::move(within.step);
    made.planner = std::move(within.planner);
    made.program = made.planner->program();
  }
  return made;
}

}  // namespace tenon::cli
