#pragma once

#include "expr/expr.h"
#include "ir/graph.h"

#include <vector>

namespace tenon::nests {

/// Returns the expression of each result of a node over the node's operands; fused groups are
/// inlined.
std::vector<Expr> node_exprs(const Graph& graph, NodeId node);

}  // namespace tenon::nests
