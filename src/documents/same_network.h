#pragma once

#include "ir/graph.h"

#include <string>
#include <utility>
#include <vector>

namespace tenon::documents {

/// Difference between two networks that should be equal: compares the computation from inputs to
/// outputs, independent of names and of the order of nodes.
struct NetworkDifference {
  /// in words; empty if they are equal except for constants' elements
  std::string first;
  /// of the first graph, without a counterpart in the second
  std::vector<NodeId> nodes;
  /// Constants of both with equal types and different elements.
  std::vector<std::pair<ValueId, ValueId>> constants;

  /// in number and type
  bool are_inputs_same = true;

  bool is_same() const { return first.empty(); }
};
NetworkDifference difference(const Graph& a, const Graph& b);

}  // namespace tenon::documents
