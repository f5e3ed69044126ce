#pragma once

#include "ir/graph.h"
#include "passes/shard/sharding.h"

#include <string>
#include <vector>

namespace tenon::passes {

/// Cost parameters of sharding.
struct ShardCosts {
  /// of a rank, with most nodes fused
  double flops_per_s = 5e10, memory_bytes_per_s = 5e10;
  /// between two ranks, in one direction
  double link_bytes_per_s = 5e9, link_latency_s = 20e-6;
};

/// A strategy to compute a node on a group of ranks, each on its shards.
struct Strategy {
  /// by position
  std::vector<Sharding> operands, results;
  /// of the node that each rank computes
  Attributes attrs;
  /// of one rank
  double seconds = 0;

  /// Returns whether every rank computes the whole node.
  bool is_plain() const;
};

struct Strategies {
  /// alternatives, the plain strategy first
  std::vector<Strategy> candidates;
  /// reasons against splitting an operand, in words
  std::vector<std::string> refusals;
};

/// Returns the strategies to compute a node on `ranks` ranks with the same result except for the
/// order of sums. Requires static extents.
Strategies strategies_of(const Graph& graph, NodeId node, std::int64_t ranks,
                         const ShardCosts& costs);

}  // namespace tenon::passes
