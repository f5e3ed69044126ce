#include "app/timed_program.h"

#include "models/inputs.h"
#include "models/rebatch.h"
#include "train/options.h"

namespace tenon::app {

TimedProgram timed_program(const models::ModelSource& source, std::optional<Program> given,
                           const TimedOptions& options, driver::CompileRequest request,
                           const Compile& compile) {
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
  made.step = train::training_step(std::move(graph), options.train, options.loss, shapes);
  if (options.passes_states_on) {
    splitting = planning::with_recurrent_states(std::move(splitting), is_for_device);
    made.step = passes::with_recurrent_states(std::move(made.step), is_for_device);
  }
  const auto compiled = [&](const Graph& step, bool describes) -> codegen::Compiled {
    request.describes_step = describes;
    made.record = compile(step, request);
    return {std::move(made.record.program), {}, std::move(made.record.step_problem)};
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

}  // namespace tenon::app
