#pragma once

#include "codegen/compile.h"
#include "tune/cache.h"

#include <functional>
#include <limits>

namespace tenon::tune {

struct TuneOptions {
  codegen::CompileOptions compile;
  /// thread count of the timed kernels; 0: all threads of the process
  int threads = 0;
  /// Time limit for starting the next kernel.
  double seconds = std::numeric_limits<double>::infinity();
  /// Polled between timings; stops tuning and keeps the results so far.
  std::function<bool()> is_interrupted = {};
  /// Prepares a program for loading; tests emulate devices with it.
  std::function<Program(Program)> ready = {};
  /// Called before each timed kernel, and at the end.
  std::function<void(std::size_t done, std::size_t total, const std::string& name)> on_kernel = {};
};

struct TuneReport {
  /// distinct kernels with more than one candidate
  std::size_t kernels = 0;
  /// of these, found in the cache
  std::size_t known = 0;
  std::size_t timed = 0;
  /// failed to run on synthetic data
  std::size_t failed = 0;
  bool was_interrupted = false;
  std::size_t left() const { return kernels - known - timed - failed; }
};

/// Auto-tuning: times the candidates for the nests of a graph on this machine, in the order of
/// their estimated time, and stores the results in the cache. Skips kernels that are in the cache.
TuneReport tune(const Graph& graph, TuningCache& cache, const TuneOptions& options);

/// Returns the decisions for the nodes of a graph, each on its own; skips nodes without a kernel.
std::vector<codegen::Decision> decide_nodes(const Graph& graph,
                                            const codegen::CompileOptions& options);

/// Returns the key of timings for this target. Throws Error (Device) if this machine lacks its
/// device.
TuningPlace tuning_place(const Target& target, int threads);

/// Returns a choice of the fastest candidate in the cache among the applicable ones; no choice for
/// unknown work. The cache must outlive it.
std::function<std::optional<codegen::Selection>(const codegen::Decision&)> tuned_choice(
    const TuningCache& cache, TuningPlace place);

}  // namespace tenon::tune
