#pragma once

#include "ir/graph.h"

#include <string>

namespace tenon::inline expr {

/// Returns the computation of a node: "conv"; for a group its members, truncated to a line:
/// "conv+add+relu".
std::string op_label(const Graph& graph, NodeId node);

/// Returns the node's origin in the names of the source model: its own name; for a group its
/// contractions, or else the first member with arithmetic.
std::string source_label(const Graph& graph, NodeId node);

/// Returns both labels, as users see a node: "conv+relu layer1.0.conv1".
std::string node_label(const Graph& graph, NodeId node);

}  // namespace tenon::inline expr
