#pragma once

#include "ir/graph.h"
#include "passes/shard/sharding.h"

#include <string>
#include <vector>

namespace tenon {

/// What sharding is weighed by.
struct ShardCosts {
  double flops_per_s = 5e10, memory_bytes_per_s = 5e10;   ///< of a rank, most of it fused
  double link_bytes_per_s = 5e9, link_latency_s = 20e-6;  ///< between two ranks, in one direction
};

/// A way to compute a node on a group of ranks, each on what it has.
struct Strategy {
  std::vector<Sharding> operands, results;  ///< by position
  Attributes attrs;                         ///< of the node that each rank computes
  double seconds = 0;                       ///< of one rank

  bool is_plain() const;  ///< every rank computes all of it
};

struct Strategies {
  std::vector<Strategy> ways;         ///< the plain one first
  std::vector<std::string> refusals;  ///< why an operand is not split, in words
};

/// The ways to compute a node on `ranks` ranks that give the same but for the order of sums. Asks
/// that extents are known.
Strategies strategies_of(const Graph& graph, NodeId node, std::int64_t ranks,
                         const ShardCosts& costs);

}  // namespace tenon
