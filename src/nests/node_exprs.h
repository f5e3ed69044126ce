#pragma once

#include "ir/graph.h"
#include "ops/expr.h"

#include <vector>

namespace tenon::nests {

/// What each node of a graph computes, a fused group as one: by result, over the node's operands.
std::vector<Expr> node_exprs(const Graph& graph, NodeId node);

}  // namespace tenon::nests
