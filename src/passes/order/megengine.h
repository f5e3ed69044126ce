#pragma once

#include "ir/graph.h"

#include <vector>

namespace tenon::passes::ordering {

/// Returns MegEngine's order of execution, including constants, which are operators there. A node's
/// id is the one that its name ends in, `conv(…)[557]`, if every node has one; otherwise its
/// position.
std::vector<NodeId> megengine_order(const Graph& graph);

}  // namespace tenon::passes::ordering
