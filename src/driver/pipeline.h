#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// The passes that run unless others are asked for, in order.
std::vector<std::string> standard_passes();

/// What one pass did.
struct PassReport {
  std::string pass;
  double elapsed_ms = 0;
  /// those in bodies too
  std::size_t nodes_before = 0, nodes_after = 0;
  /// "constant -3, fused +1"; "nothing", or "attributes or order"
  std::string change;
};

struct PipelineOptions {
  /// empty: the standard ones
  std::vector<std::string> passes;
  std::vector<std::string> without;
  std::string stop_after;
  /// Run the graph on random inputs before and after each pass and throw an Error that names the
  /// first pass that changes a result, with the smallest graph that shows it.
  bool verify_each = false;
  int verify_trials = 4;
  std::uint64_t verify_seed = 1;
  /// of the evaluator that verifies
  int thread_count = 0;
  /// Inputs that make more nodes run, or a tensor larger than this, are replaced by others.
  std::int64_t verify_node_runs = 200000;
  std::int64_t verify_result_bytes = std::int64_t{4} << 30;
  PassOptions pass_options;
  /// Called after each pass, when it is asked for.
  std::function<void(const PassReport& report, const Graph& after)> on_pass;
  /// Called as runs on random inputs are done, with the pass they are about.
  std::function<void(std::string_view pass, std::size_t done, std::size_t total)> on_verified;
};

/// How graphs are made ready for a target, as `--target` and `--precision` name them: "native",
/// "cuda:sm_90a"; "", "f16", "bf16", of a device also "tf32" and "int8" (of quantized models).
/// Throws Error (Usage) for a precision that is none.
PipelineOptions pipeline_for(const std::string& target, const std::string& precision);

/// The passes that the options ask for, in order. Throws an Error (Usage) for a name that is none,
/// or that is not among those that run.
std::vector<Pass> chosen_passes(const PipelineOptions& options);

/// Runs passes over a graph and verifies what each returns.
Graph run_pipeline(Graph graph, const PipelineOptions& options);
/// The same for passes that need not be in the list; `passes`, `without` and `stop_after` are not
/// read.
Graph run_passes(Graph graph, std::span<const Pass> passes, const PipelineOptions& options);

}  // namespace tenon
