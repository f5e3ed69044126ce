#pragma once

#include "ir/graph.h"

#include <span>
#include <string>

namespace tenon::inline expr {

/// Structural hash text: equal only for nodes that compute the same of operands of the same types.
/// Contains op, attributes, types, which operands are one value, which results are computed, and
/// the body of a fused group without names. Empty for control flow and for groups with large
/// constants.
std::string signature_of(const Graph& graph, NodeId node);
/// Signature of nodes as a future group, including their data flow and the scalar constants that
/// move into the group.
std::string signature_of(const Graph& graph, std::span<const NodeId> nodes);

}  // namespace tenon::inline expr
