#pragma once

#include "app/compile_request.h"
#include "models/model_source.h"
#include "planning/step_within_budget.h"

#include <memory>
#include <optional>

namespace tenon::app {

/// Program for `bench` and `profile`: a given one, or compiled from a model or its training step,
/// optionally within a budget.
struct TimedProgram {
  /// empty for a given program
  passes::StatefulGraph step;
  Program program;
  /// null without a budget
  std::unique_ptr<planning::BudgetPlanner> planner;
  /// Record of the last compilation, without its program; empty unless the request keeps one.
  driver::CompileRecord record;
};

/// Common options of both commands.
struct TimedOptions {
  /// 0: the model's own
  std::int64_t batch = 0;
  std::vector<std::string> shapes;
  std::string train, loss;
  planning::BudgetRequest budget;
  /// If false, every run of a training step takes the given states.
  bool passes_states_on = true;
};

TimedProgram timed_program(const models::ModelSource& source, std::optional<Program> given,
                           const TimedOptions& options, driver::CompileRequest request,
                           const Compile& compile);

}  // namespace tenon::app
