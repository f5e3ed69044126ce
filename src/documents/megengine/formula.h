#pragma once

#include "ir/graph.h"

#include <cstdint>

namespace tenon::megengine {

/// Returns the operations that MegEngine would count for a Tenon node, summed over a group's
/// members (0 for operators that it does not count), and the bytes of operands and results. Symbols
/// have the given values.
struct Formula {
  double computation = 0, memory = 0;
};
Formula formula_of(const Graph& graph, NodeId node, const DimBindings& symbols);

}  // namespace tenon::megengine
