#pragma once

#include "ir/graph.h"

#include <vector>

namespace tenon::codegen {

/// A specialized body of a control-flow node.
struct SpecialisedBody {
  Graph graph;
  /// By input of the graph: the index of the body's input.
  std::vector<std::size_t> inputs;
};

/// Clones a body with more static information: captured constants become its own, so that they can
/// be packed ahead of time and determine shapes; extents become numbers where `types`, the types of
/// the arguments, are constant.
SpecialisedBody specialised_body(const Graph& graph, const Node& node, const Graph& body,
                                 const std::vector<Type>& types);

}  // namespace tenon::codegen
