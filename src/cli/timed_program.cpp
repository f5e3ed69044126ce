#include "cli/timed_program.h"

#include "driver/inputs.h"
#include "driver/rebatch.h"
#include "driver/training/options.h"

namespace tenon::cli {

TimedProgram timed_program(const ModelSource& source, std::optional<Program> given,
                           const TimedOptions& options, TuningOptions tuning) {
  require_budget(options.budget, !options.train.empty());
  TimedProgram made;
  if (given) {
    made.program = *std::move(given);
    return made;
  }
  const auto shapes = parse_shapes(options.shapes);
  Graph graph = source.graph();
  if (options.batch > 0) graph = rebatched(std::move(graph), options.batch);
  graph = reshaped(std::move(graph), shapes);
  SplitStep splitting;
  if (options.budget.may_split)
    splitting = split_training_step(graph, options.train, options.loss, shapes);
  made.step = training_step(std::move(graph), options.train, options.loss, shapes);
  const auto compiled = [&](const Graph& step, std::optional<codegen::StepProblem>* described) {
    tuning.step_problem = described;
    return compile_tuned(step, tuning);
  };
  if (options.budget.budget.empty()) {
    made.program = compiled(made.step.graph, nullptr);
  } else {
    StepWithin within = step_within(std::move(made.step), compiled, splitting, options.budget);
    made.step = std::move(within.step);
    made.planner = std::move(within.planner);
    made.program = made.planner->program();
  }
  return made;
}

}  // namespace tenon::cli
