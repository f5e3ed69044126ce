#pragma once

#include "ir/graph.h"
#include "ops/analysis.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// The sum, or the symbol `many` where it has too many terms to be of use to anybody.
Dim total_of(const Dim& a, const Dim& b);

/// What there is to know about a graph at a glance.
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
  /// most flops first, then most nodes; constants are left out
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

/// What a node does in one run.
struct NodeWork {
  /// of its first result
  std::string name;
  double flops = 0, bytes = 0;
};
/// Of each node that runs, for these values of symbols; nothing where the data decides how much it
/// is.
std::optional<std::vector<NodeWork>> work_at(const Graph& graph, const DimBindings& symbols);

/// Nodes that run: all but constants, those in bodies of control flow too; a group is one.
std::size_t count_kernels(const Graph& graph);
/// Bytes that kernels read and write, those in bodies once; of symbols at their size hints.
double bytes_moved(const Graph& graph);

}  // namespace tenon
