#pragma once

#include "passes/shard/shard.h"
#include "passes/shard/strategies.h"

#include <memory>
#include <vector>

namespace tenon {

/// How every value is held and every node computed.
struct ShardPlan {
  /// as its maker leaves it
  IdMap<ValueId, Sharding> home;
  IdMap<NodeId, const Strategy*> way;
  /// that the way is one of
  IdMap<NodeId, std::shared_ptr<const Strategies>> all;
  /// as the graph's outputs are to be
  std::vector<Sharding> outputs;
  /// of a step, by the costs: computing and communicating
  double seconds = 0;
  /// where every rank computes everything
  double plain_seconds = 0;
  /// a node is computed so, in words
  IdMap<NodeId, std::string> why;
};

/// What it takes to have a value that is held one way another way; infinite where that cannot be.
double conversion_seconds(const TensorType& type, const Sharding& from, const Sharding& to,
                          const ShardOptions& options);

/// Chooses by cost: parameters are held in part wherever some way allows it, and among the ways to
/// do so the one whose computing and communicating take least, as far as a search finds it. From
/// inputs on, each node takes the way that suits what it reads; then ways change, node by node and
/// parameter by parameter, while that gains.
ShardPlan choose_shardings(const StatefulGraph& step, const ShardOptions& options);

}  // namespace tenon
