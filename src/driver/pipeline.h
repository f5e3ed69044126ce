#pragma once

#include "ir/graph.h"
#include "passes/definition/pass.h"
#include "target/target.h"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::driver {

/// Returns the default passes, in order.
std::vector<std::string> standard_passes();

/// A pass and the reason for its position in the list.
struct PassPosition {
  std::string name, reason;
};
/// Returns the passes of a compilation in order: the standard passes with the target's changes and
/// those of the precision.
std::vector<PassPosition> positions_for(const Target& target, TargetSpec::Precision precision);

/// Report on one pass.
struct PassReport {
  std::string pass;
  double elapsed_ms = 0;
  /// including nodes in bodies
  std::size_t nodes_before = 0, nodes_after = 0;
  /// "constant -3, fused +1"; "nothing", or "attributes or order"
  std::string change;
};

struct PipelineOptions {
  /// empty: the standard passes
  std::vector<std::string> passes;
  std::vector<std::string> without;
  std::string stop_after;
  /// Runs the graph on random inputs before and after each pass and throws an Error that names the
  /// first pass that changes a result, with the smallest failing graph.
  bool verify_each = false;
  int verify_trials = 4;
  std::uint64_t verify_seed = 1;
  /// of the verifying evaluator
  int thread_count = 0;
  /// Replaces inputs that run more nodes than this, or produce a larger tensor.
  std::int64_t verify_node_runs = 200000;
  std::int64_t verify_result_bytes = std::int64_t{4} << 30;
  passes::PassOptions pass_options;
  /// Optional callback after each pass.
  std::function<void(const PassReport& report, const Graph& after)> on_pass;
  /// Callback for the progress of verification runs, with the pass.
  std::function<void(std::string_view pass, std::size_t done, std::size_t total)> on_verified;
};

/// Returns the pipeline with the passes of `positions_for` and the target's facts.
PipelineOptions pipeline_for(const TargetSpec& spec);
PipelineOptions pipeline_for(const Target& target, TargetSpec::Precision precision);

/// Returns the passes that the options select, in order. Throws Error (Usage) for an unknown name,
/// or for one that is not among the selected passes.
std::vector<passes::Pass> chosen_passes(const PipelineOptions& options);

/// Runs passes over a graph and verifies the result of each.
Graph run_pipeline(Graph graph, const PipelineOptions& options);
/// Runs passes that need not be registered; ignores `passes`, `without` and `stop_after`.
Graph run_passes(Graph graph, std::span<const passes::Pass> passes, const PipelineOptions& options);

}  // namespace tenon::driver
