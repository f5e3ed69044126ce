#pragma once

#include "ir/graph.h"

namespace tenon::rewrite {

/// Nodes that compute what an earlier one does give way to it. Gives how many went.
std::size_t merge_common_subexpressions(Graph& graph);

}  // namespace tenon::rewrite
