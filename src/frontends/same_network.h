#pragma once

#include "ir/graph.h"

#include <string>
#include <utility>
#include <vector>

namespace tenon {

/// How a network differs from another that should be the same: what is computed of its inputs for
/// its outputs, whatever values and nodes are called and in whatever order they stand.
struct NetworkDifference {
  /// in words; empty where they are the same but for constants' elements
  std::string first;
  /// of the first graph, that the second has otherwise
  std::vector<NodeId> nodes;
  /// Constants of both that are of one type and have other elements.
  std::vector<std::pair<ValueId, ValueId>> constants;

  /// in number and type
  bool are_inputs_same = true;

  bool is_same() const { return first.empty(); }
};
NetworkDifference difference(const Graph& a, const Graph& b);

}  // namespace tenon
