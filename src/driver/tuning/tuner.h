#pragma once

#include "codegen/compile.h"
#include "driver/tuning/cache.h"

#include <functional>
#include <limits>

namespace tenon {

struct TuneOptions {
  codegen::CompileOptions compile;
  /// that kernels are timed with; 0: as many as the process may use
  int threads = 0;
  /// After so long no further kernel is begun.
  double seconds = std::numeric_limits<double>::infinity();
  /// Asked between timings; on yes, what is known is kept and the rest is left.
  std::function<bool()> is_interrupted = {};
  /// What can be loaded here of a program; tests emulate devices.
  std::function<Program(Program)> ready = {};
  /// Before each kernel that is timed, and at the end.
  std::function<void(std::size_t done, std::size_t total, const std::string& name)> on_kernel = {};
};

struct TuneReport {
  /// of different work, with more than one candidate
  std::size_t kernels = 0;
  /// of these, were in the cache
  std::size_t known = 0;
  std::size_t timed = 0;
  /// whose code could not be run on made-up data
  std::size_t failed = 0;
  bool was_interrupted = false;
  std::size_t left() const { return kernels - known - timed - failed; }
};

/// Times what can compute the nests of a graph, on this machine, those first that take longest by
/// estimate, and keeps the results in the cache. What the cache knows is not timed again.
TuneReport tune(const Graph& graph, TuningCache& cache, const TuneOptions& options);

/// What would compute the nodes of a graph, each by itself; those that no kernel computes are left
/// out.
std::vector<codegen::Decision> decide_nodes(const Graph& graph,
                                            const codegen::CompileOptions& options);

/// What timings of code for this target hold for.
TuningPlace tuning_place(const Target& target, int threads);
/// … for the options' processor, or for the device that is here. Throws Error (Device) where they
/// are for a device and there is none.
TuningPlace tuning_place(const codegen::CompileOptions& options, int threads);

/// Chooses what the cache says is fastest, among the candidates that accept now; nothing where it
/// does not know the work. The cache is to outlive it.
std::function<std::optional<codegen::Selection>(const codegen::Decision&)> tuned_choice(
    const TuningCache& cache, TuningPlace place);

}  // namespace tenon
