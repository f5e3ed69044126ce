#pragma once

#include "app/compile_request.h"
#include "host/compiled.h"
#include "planning/budget.h"
#include "profile/machine_peak.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::app {

struct BenchOptions {
  std::int64_t batch = 0;
  std::string model, output, save_inputs, cpu = "native", target, precision;
  std::vector<std::string> inputs, shapes, preferred;
  int threads = 0;
  double duration_s = 2;
  bool every_step = false, no_winograd = false, untuned = false, trust_program = false;
  std::string tune;
  /// an optimizer: times a training step with it
  std::string train;
  std::string loss, budget;
  bool swap = false, split = false;
  int warm_up_runs = 1, min_iterations = 3, max_iterations = 100000;
  /// exact number, if given
  int iterations = 0;
  /// on a device: contexts in flight
  int contexts = 2;
};

/// Times of a device program as a caller sees them: with inputs and outputs in host memory.
struct HostTimes {
  /// of consecutive runs
  std::vector<double> sorted_ms;
  /// contexts in flight; 0: not measured
  std::size_t contexts = 0;
  /// with these
  double runs_per_s = 0;
};

/// A step of the program, timed over `kStepRuns` runs.
struct SlowStep {
  std::size_t position = 0;
  /// of all runs
  StepTime time;
  /// of the time of all steps
  double share = 0;
};
inline constexpr int kStepRuns = 5;

struct BenchResult {
  bool is_program = false, is_on_device = false;
  int threads = 0;
  std::vector<double> samples_ms, sorted_ms;
  /// CPU time of all threads in the shortest run; infinite on a device
  double least_processor_ms = std::numeric_limits<double>::infinity();
  double compile_ms = 0, load_ms = 0, first_run_ms = 0;
  /// since the epoch of the steady clock
  std::int64_t first_output_ns = 0;
  std::optional<HostTimes> by_host;
  /// Rates at the median; absent for unknown work.
  std::optional<double> gflops, roofline_share;
  profile::MachinePeak peak;
  std::uint64_t arena_bytes = 0, scratch_bytes = 0, pinned_bytes = 0, device_bytes = 0,
                constant_bytes = 0, run_peak_bytes = 0;
  std::int64_t peak_kilobytes = 0;
  std::optional<planning::BudgetReport> budget;
  /// the longest first; empty unless requested
  std::vector<SlowStep> steps;
  /// Reason of each kernel choice, by the node's first result and the candidate.
  std::map<std::pair<std::string, std::string>, std::string> reasons;

  double median_ms() const { return percentile_ms(50); }
  double percentile_ms(double share) const { return percentile(sorted_ms, share); }
  static double percentile(const std::vector<double>& sorted, double share);
};

/// Compiles a model or loads a program, runs it repeatedly and measures time and memory.
BenchResult bench(const BenchOptions& options, const Compile& compile);

}  // namespace tenon::app
