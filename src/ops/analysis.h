#pragma once

#include "ir/graph.h"
#include "ops/expr.h"

namespace tenon {

/// What a node costs, derived from its lowering: arithmetic operations on elements (index
/// arithmetic not counted), bytes of the operands it reads and of the results it writes.
struct Footprint {
  Dim flops;
  Dim bytes_read;
  Dim bytes_written;
};

/// Zero flops for an op without a lowering; unknown types count as no bytes, and sums too large to
/// write down as nothing.
Footprint footprint_of(const Graph& graph, NodeId node);

/// What the node may join in one kernel: the op's own word, or derived from its lowering.
Fusion fusion_kind(const Graph& graph, NodeId node);
std::string to_string(Fusion fusion);

/// The expressions of a node's wanted results, with dynamic attributes bound where their operands
/// are constant; empty if the op has no lowering, its types or dynamic attributes are not known, or
/// an extent inside is too large to write down.
std::vector<Expr> lowered(const Graph& graph, NodeId node);

/// Arithmetic operations in an expression.
Dim flops_of(const std::vector<Expr>& exprs);
Fusion fusion_kind(const std::vector<Expr>& exprs);

}  // namespace tenon
