#pragma once

#include "passes/remarks.h"
#include "passes/shard/strategies.h"
#include "passes/train/stateful_graph.h"

#include <cstdint>

namespace tenon {

/// Ranks form a mesh: rank d * tensor_ranks + t has part d of the batch and part t of tensors.
struct ShardOptions {
  std::int64_t tensor_ranks = 1;
  /// That a batch is shared out over; sums over all ranks become sums over those.
  std::int64_t data_ranks = 1;
  ShardCosts costs = {};
};

/// The graph that each of several ranks runs, of one that takes whole tensors: products are split
/// over the ranks of a group with the parameters they read, which states are then held in part
/// (`State::Split`), and collectives stand where a value is needed otherwise than it is held.
/// Inputs and outputs that are no state's are whole. Works on any graph: forward alone, or a step
/// of training with its backward half and updates. `remarks` gets a word about every node. Throws
/// Error (Unsupported) where nothing can be split.
StatefulGraph shard(const StatefulGraph& step, const ShardOptions& options,
                    Remarks* remarks = nullptr);

}  // namespace tenon
