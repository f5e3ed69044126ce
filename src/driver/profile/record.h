#pragma once

#include "codegen/compile.h"
#include "driver/compiled.h"
#include "driver/pipeline.h"
#include "profile/profile.h"

#include <string>
#include <vector>

namespace tenon {

/// What was told while a model was compiled, for whoever wants to know why.
struct CompileRecord {
  /// behind the passes
  Graph graph;
  std::vector<codegen::Decision> decisions;
  std::vector<PassReport> passes;
  Remarks remarks;
};

struct RecordOptions {
  int warm_up_runs = 3;
  int least_runs = 10, most_runs = 100000;
  /// runs go on for so long, within those bounds
  double duration_s = 1;
  /// measured once for a machine, then remembered
  bool with_ceilings = true;
  /// where the system allows
  bool with_counters = true;
  /// also runs that are not watched, in turns with some that are: a note says the ratio
  bool with_overhead = false;
  /// Ports that hold states: whoever trains leaves them where they are from run to run, so that
  /// nothing is copied.
  std::vector<std::size_t> state_inputs = {}, state_outputs = {};
  /// of the arena, that its memory was planned within
  std::uint64_t budget_bytes = 0;
};

/// Runs a model and tells what was seen: a warm-up, then runs that are all watched; the last one is
/// the timeline. Every run copies the inputs in and the outputs out, as somebody does who calls it;
/// both are steps of their own. Without a `compiled` record (of a program file) steps have no
/// operators, reasons and remarks.
Profile record_profile(CompiledModel& model, const std::vector<Datum>& inputs,
                       const CompileRecord* compiled, const RecordOptions& options = {});

}  // namespace tenon
