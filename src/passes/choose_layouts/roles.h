#pragma once

#include "passes/choose_layouts/forms.h"

#include <string>
#include <vector>

namespace tenon::layouts {

/// What becomes of an operand or result when its node moves.
enum class ImageRole : std::uint8_t {
  /// stays as it is: weights, biases, sums over all but the channels
  Plain,
  /// moves along
  Image,
  /// of lower rank than the result it is broadcast to: has its axes moved one by one
  Broadcast,
  /// between nodes that move together or not at all
  Inner,
};

/// Whether and how a node can work on the other form.
struct Roles {
  enum class Kind : std::uint8_t {
    /// works on the form the graph came in only
    Fixed,
    Movable,
    /// a transpose from `from` to `to`: reads what is moved
    Gives,
    /// a transpose from `to` to `from`: what it gives has its moved form already
    Takes,
  };
  Kind kind = Kind::Fixed;
  /// Fixed: why, of nodes that touch images
  std::string reason;
  std::vector<ImageRole> operands, results;
  /// Movable: those of the moved node
  Attributes attrs;

  bool can_move() const { return kind == Kind::Movable; }
};

Roles roles_of(const Graph& graph, NodeId node, const Forms& forms);

}  // namespace tenon::layouts
