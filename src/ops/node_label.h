#pragma once

#include "ir/graph.h"

#include <string>

namespace tenon {

/// What a node computes: "conv"; of a group its members, as far as a line holds them:
/// "conv+add+relu".
std::string op_label(const Graph& graph, NodeId node);

/// Where its work comes from, in the names of the model's own author: the node itself; of a group
/// its products and convolutions, or else the first member that computes.
std::string source_label(const Graph& graph, NodeId node);

/// Both: "conv+relu layer1.0.conv1". What users see a step as.
std::string node_label(const Graph& graph, NodeId node);

}  // namespace tenon
