#pragma once

#include "driver/compile.h"
#include "host/compiled.h"
#include "profile/profile.h"

#include <vector>

namespace tenon::profile {

struct RecordOptions {
  int warm_up_runs = 3;
  int least_runs = 10, most_runs = 100000;
  /// minimum duration of the runs, within those bounds
  double duration_s = 1;
  /// measured once per machine, then cached
  bool with_ceilings = true;
  /// if the system permits
  bool with_counters = true;
  /// also alternates with unwatched runs: a note gives the ratio
  bool with_overhead = false;
  /// Ports that hold states: training leaves them in place from run to run, without copies.
  std::vector<std::size_t> state_inputs = {}, state_outputs = {};
  /// memory budget of the arena
  std::uint64_t budget_bytes = 0;
};

/// Profiles a model: warm-up runs, then watched runs; the last one is the timeline. Every run
/// copies the inputs in and the outputs out, as a caller would; both are separate steps. Without a
/// `compiled` record (for a program file) steps lack operators, reasons and remarks.
Profile record_profile(CompiledModel& model, const std::vector<Datum>& inputs,
                       const driver::CompileRecord* compiled, const RecordOptions& options = {});

}  // namespace tenon::profile
