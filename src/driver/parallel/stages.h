#pragma once

#include "ir/graph.h"

#include <vector>

namespace tenon {

/// What runs between two meetings of the ranks: nodes that no collective stands between, as a graph
/// of their own, and the collectives that they lead to.
struct Stage {
  Graph graph;
  std::vector<ValueId> inputs, outputs;  ///< of `graph`, as values of the whole one
  std::vector<NodeId> collectives;  ///< of the whole graph, in its order; they follow the nodes
};

/// Cuts a graph at its collectives. A node runs in the last stage before something needs it, so
/// that what only later stages read is not kept for them; constants go to each stage that reads
/// them.
std::vector<Stage> cut_at_collectives(const Graph& graph);

}  // namespace tenon
