#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/pass.h"

namespace tenon {

/// The passes that run unless others are asked for, in order.
std::vector<std::string> standard_passes();

struct PipelineOptions {
  std::vector<std::string> passes;   ///< empty: the standard ones
  std::vector<std::string> without;
  std::string stop_after;
  /// Run the graph on random inputs before and after each pass and throw an Error that names the
  /// first pass that changes a result.
  bool verify_each = false;
  PassOptions pass_options;
};

/// Runs passes over a graph and verifies what each returns.
Graph run_pipeline(Graph graph, const PipelineOptions& options);

}  // namespace tenon
