#pragma once

#include "passes/choose_layouts/roles.h"

namespace tenon::layouts {

/// What is known of a graph before anything is chosen.
struct Problem {
  const Graph& graph;
  const Forms& forms;
  IdMap<NodeId, Roles> roles;

  /// where a convolution does not have the form it prefers
  double lost_bytes_per_flop;

  Problem(const Graph& about, const Forms& between, double lost);
};

/// Which nodes move.
struct Choice {
  /// 1 for those that do
  IdMap<NodeId, std::uint8_t> moves;
  /// what a node gains by moving, as bytes moved in its time
  IdMap<NodeId, double> saved_bytes;
  bool is_empty = true;
};

/// The constant of a value that is moved before anything runs; null where it is too large, or none.
const Constant* free_constant(const Graph& graph, ValueId value);
/// What it costs to bring a value of that type from one form to the other: bytes read and written.
double conversion_bytes(const TensorType& type, const Axes& perm);

/// The cheapest one: what nodes lose that do not have the form they prefer, plus what transposes
/// move.
Choice cheapest(const Problem& problem);
/// TensorFlow's rule (its layout optimiser of version 1.9) for the nodes that run on a GPU.
Choice tensorflow(const Problem& problem);

}  // namespace tenon::layouts
