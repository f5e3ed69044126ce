#pragma once

#include "ir/graph.h"

namespace tenon {

/// Whether the node is a group of nodes that run as one kernel.
bool is_fused_group(const Graph& graph, NodeId node);

/// Puts the nodes of a group in its place; the group's results keep their names.
void inline_group(Graph& graph, NodeId group);
/// Puts the nodes of a body of `node` in its place; `inputs` are the values that the body's inputs
/// stand for.
void inline_body(Graph& graph, NodeId node, const Graph& body, const std::vector<ValueId>& inputs);
/// The same as `inline_group` for every group, in bodies and groups too. For whoever has no word
/// for a group.
void inline_groups(Graph& graph);
bool has_groups(const Graph& graph);

}  // namespace tenon
