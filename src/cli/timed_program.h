#pragma once

#include "cli/tuning.h"
#include "driver/model_source.h"
#include "driver/planning/step_within.h"

#include <memory>
#include <optional>

namespace tenon::cli {

/// What `bench` and `profile` run: a program that was given, or one of a model, of its training
/// step where that is asked for, within a budget where there is one.
struct TimedProgram {
  /// empty of a program that was given
  StatefulGraph step;
  Program program;
  /// nothing without a budget
  std::unique_ptr<BudgetPlanner> planner;
  /// as in CompileRequest
  std::vector<StatePorts> overwritten;
};

/// What both commands are told of it.
struct TimedOptions {
  /// 0: the model's own
  std::int64_t batch = 0;
  std::vector<std::string> shapes;
  std::string train, loss;
  BudgetRequest budget;
};

TimedProgram timed_program(const ModelSource& source, std::optional<Program> given,
                           const TimedOptions& options, TuningOptions tuning);

}  // namespace tenon::cli
