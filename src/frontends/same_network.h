#pragma once

#include "ir/graph.h"

#include <string>
#include <utility>
#include <vector>

namespace tenon {

/// How a network differs from another that should be the same: what is computed of its inputs for
/// its outputs, whatever values and nodes are called and in whatever order they stand.
struct NetworkDifference {
  std::string first;  ///< in words; empty where they are the same but for constants' elements
  std::vector<NodeId> nodes;  ///< of the first graph, that the second has otherwise
  /// Constants of both that are of one type and have other elements.
  std::vector<std::pair<ValueId, ValueId>> constants;

  bool are_inputs_same = true;  ///< in number and type

  bool is_same() const { return first.empty(); }
};
NetworkDifference difference(const Graph& a, const Graph& b);

}  // namespace tenon
