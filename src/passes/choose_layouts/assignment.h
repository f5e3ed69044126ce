#pragma once

#include "passes/choose_layouts/roles.h"

namespace tenon::passes::layouts {

/// Facts about a graph that layout assignment starts from.
struct LayoutProblem {
  const Graph& graph;
  const Forms& forms;
  IdMap<NodeId, LayoutRoles> roles;

  /// bytes lost per flop by a convolution in the layout it does not prefer
  double lost_bytes_per_flop;

  LayoutProblem(const Graph& about, const Forms& between, double lost);
};

/// The set of nodes that change layout.
struct LayoutAssignment {
  /// 1 for nodes that change layout
  IdMap<NodeId, std::uint8_t> moves;
  /// bandwidth-equivalent gain of each moved node, in bytes
  IdMap<NodeId, double> saved_bytes;
  bool is_empty = true;
};

/// Returns the constant that a value holds if its conversion happens at compile time; null if the
/// value is not constant or is too large.
const Constant* free_constant(const Graph& graph, ValueId value);
/// Returns the cost of converting a value of that type between the layouts: bytes read and written.
double conversion_bytes(const TensorType& type, const Axes& perm);

/// Returns the optimal choice by minimum cut: minimizes the loss of nodes in the layout that they
/// do not prefer plus the bytes that transposes move.
LayoutAssignment cheapest(const LayoutProblem& problem);
/// Returns the choice of TensorFlow's layout optimizer (version 1.9) for nodes on a GPU.
LayoutAssignment tensorflow(const LayoutProblem& problem);

}  // namespace tenon::passes::layouts
