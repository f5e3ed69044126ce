#pragma once

#include "expr/analysis.h"
#include "ir/graph.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tenon::models {

/// Returns the sum, or the symbol `many` if it has too many terms to be useful.
Dim total_of(const Dim& a, const Dim& b);

/// Overview of a graph.
struct GraphSummary {
  struct Port {
    std::string name;
    Type type;
  };
  struct OpCount {
    std::string op;
    std::size_t nodes = 0;
    Footprint footprint;
  };
  std::vector<Port> inputs, outputs;
  /// sorted by flops, then by nodes; without constants
  std::vector<OpCount> ops;
  std::size_t node_count = 0, constant_count = 0;
  /// elements of floating constants
  std::int64_t parameter_count = 0;
  std::int64_t constant_bytes = 0;
  Footprint total;
  /// of the inputs' types
  SymbolRanges symbols;
};

GraphSummary summarize(const Graph& graph);

/// Work of a node in one run.
struct NodeWork {
  /// of its first result
  std::string name;
  double flops = 0, bytes = 0;
};
/// Returns the work of each node that runs, for these values of symbols; nullopt if it depends on
/// data.
std::optional<std::vector<NodeWork>> work_at(const Graph& graph, const DimBindings& symbols);

/// Returns the number of nodes that run: all but constants, including those in bodies of control
/// flow; a group counts as one.
std::size_t count_kernels(const Graph& graph);
/// Returns the bytes that kernels read and write, counting bodies once, with symbols at their size
/// hints.
double bytes_moved(const Graph& graph);

}  // namespace tenon::models
