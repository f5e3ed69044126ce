#pragma once

#include "ir/graph.h"

#include <vector>

namespace tenon {

/// How one element of a node's results depends on an operand; a later one is harder to join.
enum class Access : std::uint8_t {
  /// not at all, or only its extents
  Unread,
  /// the element at the same place
  Aligned,
  /// all elements along the reduced axes of the same row
  Row,
  /// the element at the same place of fewer axes, or of axes of extent 1
  Broadcast,
  /// elements at other places
  Moved,
  /// many elements at other places, folded
  Window,
};

/// What a node does to elements: coarser than its expression, finer than `Fusion`.
enum class Role : std::uint8_t {
  /// nothing is known, or the op asks to be left alone
  Opaque,
  /// arithmetic on the elements read
  Pointwise,
  /// no arithmetic: every element is one that was read, or a fill
  Move,
  /// folds whole axes, all of them the same; gives rows or whole spaces
  Rows,
  /// folds elements read at computed places: pooling, group norm
  Windows,
  /// sums of products
  Contraction,
};

/// What a kernel's author asks about a node; derived from its lowering.
struct NodeAccess {
  Role role = Role::Opaque;
  /// by position
  std::vector<Access> operands;
  /// The space iterated over: of Rows the one folded, else the results'.
  Dims space;
  /// Rows: those folded
  std::vector<std::size_t> axes;
  /// at the size hints of symbols
  double flops = 0;
  /// Rows and Windows: how many elements all folds go through
  double folded_elements = 0;
  /// Moved operands: no element is read twice
  bool reads_once = false;
  /// of a Move that reads once: every element is read
  bool covers = false;
};

NodeAccess access_of(const Graph& graph, NodeId node);
/// Of every node; alike nodes are looked at once.
IdMap<NodeId, NodeAccess> access_of_nodes(const Graph& graph);

/// The dims without those of extent 1: two shapes that agree here have the same elements in the
/// same order.
Dims squeezed(const Dims& dims);
/// The number where it is known, else what it is at the size hints of its symbols; for comparing
/// costs.
double size_hint(const Dim& dim);
/// The least that it can be, and at least 1.
double least_value(const Dim& dim);
double size_hint_bytes(const Type& type);

}  // namespace tenon
