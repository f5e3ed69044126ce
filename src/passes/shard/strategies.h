#pragma once

#include "ir/graph.h"
#include "passes/shard/sharding.h"

#include <string>
#include <vector>

namespace tenon {

/// What sharding is weighed by.
struct ShardCosts {
  /// of a rank, most of it fused
  double flops_per_s = 5e10, memory_bytes_per_s = 5e10;
  /// between two ranks, in one direction
  double link_bytes_per_s = 5e9, link_latency_s = 20e-6;
};

/// A way to compute a node on a group of ranks, each on what it has.
struct Strategy {
  /// by position
  std::vector<Sharding> operands, results;
  /// of the node that each rank computes
  Attributes attrs;
  /// of one rank
  double seconds = 0;

  /// every rank computes all of it
  bool is_plain() const;
};

struct Strategies {
  /// the plain one first
  std::vector<Strategy> ways;
  /// why an operand is not split, in words
  std::vector<std::string> refusals;
};

/// The ways to compute a node on `ranks` ranks that give the same but for the order of sums. Asks
/// that extents are known.
Strategies strategies_of(const Graph& graph, NodeId node, std::int64_t ranks,
                         const ShardCosts& costs);

}  // namespace tenon
