#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ops/analysis.h"

namespace tenon {

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
  std::vector<OpCount> ops;  ///< most flops first, then most nodes; constants are left out
  std::size_t node_count = 0, constant_count = 0;
  std::int64_t parameter_count = 0;  ///< elements of floating constants
  std::int64_t constant_bytes = 0;
  Footprint total;
  SymbolRanges symbols;  ///< of the inputs' types
};

GraphSummary summarize(const Graph& graph);

}  // namespace tenon
