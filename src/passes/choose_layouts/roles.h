#pragma once

#include "passes/choose_layouts/forms.h"

#include <string>
#include <vector>

namespace tenon::layouts {

/// What becomes of an operand or result when its node moves.
enum class ImageRole : std::uint8_t {
  Plain,      ///< stays as it is: weights, biases, sums over all but the channels
  Image,      ///< moves along
  Broadcast,  ///< of lower rank than the result it is broadcast to: has its axes moved one by one
  Inner,      ///< between nodes that move together or not at all
};

/// Whether and how a node can work on the other form.
struct Roles {
  enum class Kind : std::uint8_t {
    Fixed,  ///< works on the form the graph came in only
    Movable,
    Gives,  ///< a transpose from `from` to `to`: reads what is moved
    Takes,  ///< a transpose from `to` to `from`: what it gives has its moved form already
  };
  Kind kind = Kind::Fixed;
  std::string reason;  ///< Fixed: why, of nodes that touch images
  std::vector<ImageRole> operands, results;
  Attributes attrs;  ///< Movable: those of the moved node

  bool can_move() const { return kind == Kind::Movable; }
};

Roles roles_of(const Graph& graph, NodeId node, const Forms& forms);

}  // namespace tenon::layouts
