#pragma once

#include "ir/graph.h"

#include <vector>

namespace tenon::ordering {

/// MegEngine's order of execution, constants among the rest as they are operators there. A node's
/// id is the one its name ends in, `conv(…)[557]`, if every node has one; else nodes are numbered
/// as they stand.
std::vector<NodeId> megengine_order(const Graph& graph);

}  // namespace tenon::ordering
