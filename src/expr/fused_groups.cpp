#include "expr/fused_groups.h"

#include "base/error.h"

#include <unordered_map>
#include <utility>

namespace tenon::inline expr {

bool is_fused_group(const Graph& graph, NodeId node) { return graph.op_name(node) == "fused"; }

void inline_group(Graph& graph, NodeId group) {
  TENON_ASSERT(is_fused_group(graph, group), "only a group has a body to inline");
  const Graph body = graph.node(group).bodies.front();
  const std::vector<ValueId> inputs = graph.node(group).operands;
  inline_body(graph, group, body, inputs);
}

void inline_body(Graph& graph, NodeId group, const Graph& body,
                 const std::vector<ValueId>& inputs) {
  const std::vector<ValueId> results = graph.node(group).results;
  std::unordered_map<ValueId, ValueId> outer;  // body value -> graph value
  for (std::size_t k = 0; k < body.inputs().size(); ++k) outer[body.inputs()[k]] = inputs.at(k);
  for (NodeId id : body.nodes_in_order()) {
    const Node& node = body.node(id);
    Graph::NewNode copy{node.op, {}, node.attrs, node.bodies, {}, node.name};
    for (ValueId operand : node.operands)
      copy.operands.push_back(operand ? outer.at(operand) : ValueId{});
    for (ValueId result : node.results) {
      copy.results.push_back(result ? graph.free_name(body.value(result).name) : "_");
    }
    const NodeId made = graph.add_node(std::move(copy), group);
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      if (!node.results[k]) continue;
      const ValueId result = graph.node(made).results[k];
      outer[node.results[k]] = result;
      // A declared type (with a layout, for example) is more specific than the inferred one.
      if (body.has_stated_type(node.results[k])) {
        graph.set_type(result, body.value(node.results[k]).type);
      }
    }
  }
  std::unordered_map<ValueId, bool> is_named;  // an output that occurs twice keeps its first name
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (!results[k]) continue;
    const ValueId made = outer.at(body.outputs().at(k));
    graph.replace_uses(results[k], made);
    const bool is_inner = body.value(body.outputs()[k]).producer.is_valid();
    if (is_inner && !std::exchange(is_named[made], true)) graph.swap_names(results[k], made);
  }
  graph.erase(group);
}

void inline_groups(Graph& graph) {
  for (bool is_found = true; is_found;) {  // an inlined group may contain groups
    is_found = false;
    for (NodeId id : graph.nodes_in_order()) {
      if (is_fused_group(graph, id)) {
        inline_group(graph, id);
        is_found = true;
      } else if (!graph.node(id).bodies.empty()) {
        for (Graph& body : graph.mutable_node(id).bodies) inline_groups(body);
      }
    }
  }
}

bool has_groups(const Graph& graph) {
  for (NodeId id : graph.nodes_in_order()) {
    if (is_fused_group(graph, id)) return true;
    for (const Graph& body : graph.node(id).bodies) {
      if (has_groups(body)) return true;
    }
  }
  return false;
}

}  // namespace tenon::inline expr
