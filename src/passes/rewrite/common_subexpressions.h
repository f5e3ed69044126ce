#pragma once

#include "ir/graph.h"

namespace tenon::passes::rewrite {

/// Common-subexpression elimination: replaces nodes that compute the same as an earlier one.
/// Returns the number of nodes removed.
std::size_t merge_common_subexpressions(Graph& graph);

}  // namespace tenon::passes::rewrite
