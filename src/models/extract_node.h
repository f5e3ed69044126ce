#pragma once

#include "ir/graph.h"

namespace tenon::models {

/// Extracts one node into a graph: its operands become inputs, or constants if they are constant,
/// and all its results become outputs. Adds an input for each symbol that is not the extent of an
/// operand, so that every symbol is known at run time.
Graph extract_node(const Graph& graph, NodeId node);

}  // namespace tenon::models
