#pragma once

#include "ir/graph.h"

#include <vector>

namespace tenon {

/// What runs between two meetings of the ranks: nodes that no collective stands between, as a graph
/// of their own, and the collectives that they lead to.
struct Stage {
  Graph graph;
  /// of `graph`, as values of the whole one
  std::vector<ValueId> inputs, outputs;
  /// of the whole graph, in its order; they follow the nodes
  std::vector<NodeId> collectives;
  /// over the parts of a batch: it runs once a step, not for each
  bool is_behind_sums = false;
};

/// Whether a collective adds up what parts of a batch lead to, rather than what ranks compute of
/// one part together: with `tensor_ranks` in each group of those, ranks of other parts stand so far
/// apart.
bool is_sum_over_parts(const Graph& graph, NodeId collective, std::int64_t tensor_ranks);

/// Whether a collective puts a state together for those who compute with it. Nothing has to be
/// computed before it, so that it is no cut: what reads it has it as an input.
bool is_state_gather(const Graph& graph, NodeId collective);

/// Cuts a graph at its collectives. A node runs in the last stage before something needs it, so
/// that what only later stages read is not kept for them; constants go to each stage that reads
/// them. What reads sums over parts comes behind all that does not.
std::vector<Stage> cut_at_collectives(const Graph& graph, std::int64_t tensor_ranks = 1);

}  // namespace tenon
