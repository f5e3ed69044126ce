#pragma once

#include "ir/graph.h"

#include <vector>

namespace tenon::distributed {

/// Nodes between two synchronizations of the ranks, without a collective among them, as a graph of
/// their own, and the collectives that follow.
struct StepStage {
  Graph graph;
  /// of `graph`, as values of the whole graph
  std::vector<ValueId> inputs, outputs;
  /// of the whole graph, in order; they follow the nodes
  std::vector<NodeId> collectives;
  /// after sums over the parts of a batch: runs once per step instead of once per part
  bool follows_reductions = false;
};

/// Returns whether a collective reduces over the parts of a batch, rather than over ranks that
/// compute one part together: with `tensor_ranks` per group, ranks of other parts are that stride
/// apart.
bool is_gradient_reduction(const Graph& graph, NodeId collective, std::int64_t tensor_ranks);

/// Returns whether a collective gathers a state for its readers. It depends on no computation and
/// therefore does not end a stage: its readers take it as an input.
bool is_state_gather(const Graph& graph, NodeId collective);

/// Cuts a graph into stages at its collectives. A node runs in the last possible stage, so that its
/// results are not kept longer than needed; constants are duplicated into each stage. Readers of
/// sums over parts come after all other nodes.
std::vector<StepStage> cut_at_collectives(const Graph& graph, std::int64_t tensor_ranks = 1);

}  // namespace tenon::distributed
