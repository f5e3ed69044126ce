#pragma once

#include "ir/graph.h"
#include "memory/problem.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tenon::memory {

/// Live bytes while a graph runs node by node without in-place reuse: each value lives from its
/// defining node to its last reader, outputs to the end. Inputs and constants are owned by the
/// caller and do not count. A body's own peak counts while its node runs; values inside a fused
/// group take no memory.
struct LivePeak {
  std::int64_t peak_bytes = 0;
  /// First step at the peak.
  std::size_t step = 0;
  /// The node of that step.
  NodeId node;
  /// Values at that step, largest first.
  std::vector<ValueId> alive;
  /// By step.
  std::vector<std::int64_t> bytes;
  /// By step; constants take no step.
  std::vector<NodeId> nodes;
  /// False if symbolic extents were replaced by size hints.
  bool is_exact = true;
};

LivePeak live_peak(const Graph& graph);
/// Returns the peak for this execution order.
LivePeak live_peak(const Graph& graph, std::span<const NodeId> order);

/// Returns the bytes of a value, symbolic extents at their size hints; 0 for types other than
/// tensors.
std::int64_t live_bytes(const Graph& graph, ValueId value);
/// Returns the peak of live bytes inside the node's bodies.
std::int64_t inner_peak_bytes(const Graph& graph, NodeId node);
/// Returns all nodes except constants, in graph order.
std::vector<NodeId> running_nodes(const Graph& graph);
/// Converts the graph to a planning problem: one item per running node, without times; peaks of
/// bodies become workspace.
Problem liveness_problem(const Graph& graph);

}  // namespace tenon::memory
