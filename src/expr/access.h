#pragma once

#include "ir/graph.h"

#include <vector>

namespace tenon::inline expr {

/// Dependence of one result element on an operand, in order of increasing difficulty of fusion.
enum class Access : std::uint8_t {
  /// Not read, or only its extents.
  Unread,
  /// The element at the same position.
  Aligned,
  /// All elements of the same row along the reduced axes.
  Row,
  /// The element at the same position of fewer axes, or of axes of extent 1.
  Broadcast,
  /// Elements at other positions.
  Moved,
  /// A reduction over elements at other positions.
  Window,
};

/// Computation pattern of a node: coarser than its expression, finer than `Fusion`.
enum class Role : std::uint8_t {
  /// Unknown, or an op that opts out of fusion.
  Opaque,
  /// Arithmetic on the elements read.
  Pointwise,
  /// Data movement without arithmetic: every element is a copy of an operand element or a fill.
  Move,
  /// Reduces whole axes, the same in all reductions; returns rows or the whole space.
  Rows,
  /// Reduces elements read at computed coordinates: pooling, group norm.
  Windows,
  /// Sum of products.
  Contraction,
};

/// Access pattern of a node, for kernel generators; derived from its lowering.
struct NodeAccess {
  Role role = Role::Opaque;
  /// Indexed by operand position.
  std::vector<Access> operands;
  /// Iteration space: the reduced space for Rows, otherwise the results' shape.
  Dims space;
  /// Reduced axes, for Rows.
  std::vector<std::size_t> axes;
  /// Evaluated at the size hints of symbols.
  double flops = 0;
  /// Elements that all reductions read, for Rows and Windows.
  double folded_elements = 0;
  /// For Moved operands: each element is read at most once.
  bool reads_once = false;
  /// For a Move with `reads_once`: every element is read.
  bool covers = false;
};

NodeAccess access_of(const Graph& graph, NodeId node);
/// Computes the access of every node; equal nodes are analysed once.
IdMap<NodeId, NodeAccess> access_of_nodes(const Graph& graph);

/// Returns the dims without extents of 1. Two shapes with equal squeezed dims have the same
/// elements in the same order.
Dims squeezed(const Dims& dims);
/// Returns the extent if it is constant, otherwise its value at the size hints of its symbols. For
/// comparing costs.
double size_hint(const Dim& dim);
/// Returns the lower bound of the extent, at least 1.
double least_value(const Dim& dim);
double size_hint_bytes(const Type& type);

}  // namespace tenon::inline expr
