#pragma once

#include "ir/graph.h"

namespace tenon {

/// A graph of one node of another: its operands are inputs, or constants where they are that, and
/// all its results are outputs. An input more for each symbol that no operand has for an extent, so
/// that every symbol can be told when it runs.
Graph node_alone(const Graph& graph, NodeId node);

}  // namespace tenon
