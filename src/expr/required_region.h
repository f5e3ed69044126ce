#pragma once

#include "ir/graph.h"

#include <optional>
#include <vector>

namespace tenon::inline expr {

/// Region inference along one axis of an operand: the positions that one position of a node's
/// result reads. `count` neighbours from a start that moves with one axis of the result, or all
/// positions.
struct RequiredRegion {
  /// Axis of the result; nullopt if the region is fixed or covers all positions.
  std::optional<std::size_t> axis;
  /// Movement of the start per position along the axis.
  std::int64_t step = 0;
  /// Start at the first position; below 0 with padding.
  std::int64_t first = 0;
  Dim count;

  bool is_window() const { return axis && !(count == Dim(1)); }
};

/// Returns one region per axis of the operand; empty for a node with several results or without a
/// lowering. Coordinates that are not affine in positions count as reading everything.
std::vector<RequiredRegion> required_regions(const Graph& graph, NodeId node, std::size_t operand);

}  // namespace tenon::inline expr
