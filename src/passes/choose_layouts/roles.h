#pragma once

#include "passes/choose_layouts/forms.h"

#include <string>
#include <vector>

namespace tenon::passes::layouts {

/// Role of an operand or result of a node whose layout changes.
enum class ImageRole : std::uint8_t {
  /// keeps its axes: weights, biases, reductions over all axes but the channels
  Plain,
  /// is converted
  Image,
  /// is broadcast and of lower rank than the result: its axes are converted individually
  Broadcast,
  /// connects nodes that move together or not at all
  Inner,
};

/// Support of a node for the other layout.
struct LayoutRoles {
  enum class Kind : std::uint8_t {
    /// supports only the layout of the incoming graph
    Fixed,
    Movable,
    /// a transpose from `from` to `to`: its result is the moved operand
    Gives,
    /// a transpose from `to` to `from`: its operand is the moved result
    Takes,
  };
  Kind kind = Kind::Fixed;
  /// Fixed: the reason, for nodes on images
  std::string reason;
  std::vector<ImageRole> operands, results;
  /// Movable: attributes of the moved node
  Attributes attrs;

  bool can_move() const { return kind == Kind::Movable; }
};

LayoutRoles roles_of(const Graph& graph, NodeId node, const Forms& forms);

}  // namespace tenon::passes::layouts
