#pragma once

#include "ir/graph.h"

#include <optional>
#include <vector>

namespace tenon {

/// Along one axis of an operand, the positions that one position of a node's result needs: so many
/// neighbours, from a place that moves with one axis of the result, or all there are.
struct RequiredRegion {
  /// of the result; none where all positions are needed, or fixed ones
  std::optional<std::size_t> axis;
  /// positions by which the place moves along it
  std::int64_t step = 0;
  /// the place at the first position; below 0 where edges are filled
  std::int64_t first = 0;
  Dim count;

  bool is_window() const { return axis && !(count == Dim(1)); }
};

/// By the operand's axes; empty for a node of several results, or one that is not described by
/// expressions. What an expression does to places beyond shifts and steps counts as needing all.
std::vector<RequiredRegion> required_regions(const Graph& graph, NodeId node, std::size_t operand);

}  // namespace tenon
