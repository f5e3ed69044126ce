#pragma once

#include "ir/graph.h"

#include <vector>

namespace tenon::codegen {

/// A body of a node as it is compiled.
struct Body {
  Graph graph;
  /// by input of the graph: which of the body's it is
  std::vector<std::size_t> inputs;
};

/// A copy of a body with more that is known: constants that the node captures are its own, where
/// they can be packed ahead and decide shapes; extents are numbers where `types`, of what its
/// inputs are given, say so.
Body known_body(const Graph& graph, const Node& node, const Graph& body,
                const std::vector<Type>& types);

}  // namespace tenon::codegen
