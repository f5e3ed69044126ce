#pragma once

#include "ir/graph.h"

namespace tenon::inline expr {

/// Returns whether the node is a fused group, whose nodes run as one kernel.
bool is_fused_group(const Graph& graph, NodeId node);

/// Replaces a group by its nodes; the group's results keep their names.
void inline_group(Graph& graph, NodeId group);
/// Replaces `node` by the nodes of one of its bodies; `inputs` are the values of the body's inputs.
void inline_body(Graph& graph, NodeId node, const Graph& body, const std::vector<ValueId>& inputs);
/// Inlines every group, including groups in bodies and groups. For consumers that do not support
/// groups.
void inline_groups(Graph& graph);
bool has_groups(const Graph& graph);

}  // namespace tenon::inline expr
