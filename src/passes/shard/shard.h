#pragma once

#include "passes/definition/remarks.h"
#include "passes/shard/strategies.h"
#include "passes/train/stateful_graph.h"

#include <cstdint>

namespace tenon::passes {

/// Mesh of ranks for data and tensor parallelism: rank d * tensor_ranks + t has part d of the batch
/// and shard t of tensors.
struct ShardOptions {
  std::int64_t tensor_ranks = 1;
  /// Ranks of data parallelism; sums over all ranks become sums over these.
  std::int64_t data_ranks = 1;
  ShardCosts costs = {};
};

/// Tensor parallelism: returns the graph that each rank runs. Splits products over the ranks of a
/// tensor group together with the parameters they read, whose states are then held in shards
/// (`State::Split`), and inserts collectives wherever a value is needed in another sharding. Inputs
/// and outputs that are not states stay whole. Works on any graph: inference, or a training step
/// with backward pass and updates. `remarks` gets an entry for every node. Throws Error
/// (Unsupported) if no value can be split.
StatefulGraph shard(const StatefulGraph& step, const ShardOptions& options,
                    Remarks* remarks = nullptr);

}  // namespace tenon::passes
