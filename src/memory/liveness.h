#pragma once

#include "ir/graph.h"
#include "memory/problem.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tenon::memory {

/// What is held in memory while a graph runs node by node, nothing overwritten in place: each value
/// from the node that makes it to the last that reads it, outputs to the end. Inputs and constants
/// are held by whoever brings them and do not count. A body's own peak counts while its node runs;
/// what flows inside a fused group touches no memory.
struct LivePeak {
  std::int64_t peak_bytes = 0;
  /// the first at which the peak is reached
  std::size_t step = 0;
  /// that runs there
  NodeId node;
  /// there, largest first
  std::vector<ValueId> alive;
  /// at each step
  std::vector<std::int64_t> bytes;
  /// of each step: all but constants
  std::vector<NodeId> nodes;
  /// false where extents had to be guessed at
  bool is_exact = true;
};

LivePeak live_peak(const Graph& graph);
/// The same if the nodes ran in this order.
LivePeak live_peak(const Graph& graph, std::span<const NodeId> order);

/// Bytes that the value takes; of symbols at their size hints. Nothing for what is no tensor.
std::int64_t held_bytes(const Graph& graph, ValueId value);
/// Bytes that flow into bodies' own values while the node runs.
std::int64_t inner_peak_bytes(const Graph& graph, NodeId node);
/// The nodes that run, in the graph's order: all but constants.
std::vector<NodeId> running_nodes(const Graph& graph);
/// The same as a problem: an item for each of them, no times yet; bodies' peaks as workspace.
Problem held_problem(const Graph& graph);

}  // namespace tenon::memory
