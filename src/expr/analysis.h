#pragma once

#include "expr/expr.h"
#include "ir/graph.h"

namespace tenon::inline expr {

/// Cost of a node, derived from its lowering: arithmetic operations on elements (without index
/// arithmetic), bytes of the operands read and of the results written.
struct Footprint {
  Dim flops;
  Dim bytes_read;
  Dim bytes_written;
};

/// Counts zero flops for an op without a lowering, and zero bytes for unknown types and for sums
/// that exceed the size limit of extents.
Footprint footprint_of(const Graph& graph, NodeId node);

/// Returns the fusion kind of a node: declared by the op or derived from its lowering.
Fusion fusion_kind(const Graph& graph, NodeId node);
std::string to_string(Fusion fusion);

/// Returns the expressions of a node's computed results, with dynamic attributes bound if their
/// operands are constant. Empty if the op has no lowering, if its types or dynamic attributes are
/// unknown, or if an extent exceeds the size limit.
std::vector<Expr> lowered(const Graph& graph, NodeId node);

/// Counts the arithmetic operations of expressions, of which some may be undefined.
Dim flops_of(const std::vector<Expr>& exprs);
Fusion fusion_kind(const std::vector<Expr>& exprs);

}  // namespace tenon::inline expr
