#pragma once

#include "ir/graph.h"

#include <cstdint>

namespace tenon::megengine {

/// What MegEngine would count for a node of Tenon's, a group's members added up: arithmetic by its
/// formulas, 0 for operators that it counts none of, and the bytes of operands and results. Symbols
/// take the values given.
struct Formula {
  double computation = 0, memory = 0;
};
Formula formula_of(const Graph& graph, NodeId node, const DimBindings& symbols);

}  // namespace tenon::megengine
