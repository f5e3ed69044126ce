#pragma once

#include "ir/graph.h"

#include <span>
#include <string>

namespace tenon {

/// A text that two nodes have in common only where they compute the same of operands of the same
/// types: op, attributes, types, which operands are one value, which results are wanted, the body
/// of a fused group without its names. Empty where that does not tell what is computed: control
/// flow, and groups that hold a constant of many elements.
std::string signature_of(const Graph& graph, NodeId node);
/// The same of nodes that are to be a group: with what they hand each other, and the lone numbers
/// that they read, which move into it.
std::string signature_of(const Graph& graph, std::span<const NodeId> nodes);

}  // namespace tenon
