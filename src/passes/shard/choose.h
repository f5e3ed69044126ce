#pragma once

#include "passes/shard/shard.h"
#include "passes/shard/strategies.h"

#include <memory>
#include <vector>

namespace tenon::passes {

/// Sharding of every value and strategy of every node.
struct ShardPlan {
  /// as its producer leaves it
  IdMap<ValueId, Sharding> home;
  IdMap<NodeId, const Strategy*> candidate;
  /// the alternatives of each node
  IdMap<NodeId, std::shared_ptr<const Strategies>> all;
  /// required shardings of the graph's outputs
  std::vector<Sharding> outputs;
  /// estimated time of a step: computation and communication
  double seconds = 0;
  /// the same if every rank computes everything
  double plain_seconds = 0;
  /// reason for each node's strategy, in words
  IdMap<NodeId, std::string> why;
};

/// Returns the time to convert a value between two shardings; infinite if impossible.
double conversion_seconds(const TensorType& type, const Sharding& from, const Sharding& to,
                          const ShardOptions& options);

/// Tensor parallelism by cost model: splits parameters wherever a strategy allows it, and minimizes
/// the time of computation and communication as far as a search finds it. A greedy pass from the
/// inputs on gives the start, local search over nodes and parameters improves it.
ShardPlan choose_shardings(const StatefulGraph& step, const ShardOptions& options);

}  // namespace tenon::passes
