#pragma once

#include "expr/access.h"

#include <cstdint>
#include <vector>

namespace tenon::passes::fusing {

/// Relay's kinds of ops (OpPatternKind). Rules compare the numbers.
enum class OpPattern : std::uint8_t {
  ElemWise = 0,
  Broadcast = 1,
  Injective = 2,
  CommReduce = 3,
  OutEWiseFusable = 4,
  Tuple = 7,
  Opaque = 8,
};

/// The graph as Relay sees it: one expression for each node, tuple, projection, input and constant.
struct RelayGraph {
  struct Edge {
    std::uint32_t consumer;
    OpPattern pattern;
  };
  struct Expression {
    /// invalid for an expression without a node
    NodeId node;
    OpPattern pattern = OpPattern::Opaque;
    /// the function's body or a parameter
    bool is_seen_from_outside = false;
    std::vector<Edge> consumers;
  };
  /// in post-order, operands from left to right
  std::vector<Expression> expressions;
};

RelayGraph relay_graph(const Graph& graph);
/// Returns the kind that Relay registers for the node's op.
OpPattern relay_pattern(const Graph& graph, NodeId node, const NodeAccess& access);

/// An immediate post-dominator. `pattern` is the largest kind on any path to the parent.
struct PostDominator {
  static constexpr std::uint32_t kNone = 0xffffffff;
  std::uint32_t parent = kNone;
  std::uint32_t depth = 1;
  OpPattern pattern = OpPattern::Opaque;
};
std::vector<PostDominator> post_dominators(const RelayGraph& graph);

}  // namespace tenon::passes::fusing
