#include <algorithm>

#include "ops/registry.h"
#include "passes/pass.h"
#include "reference/evaluate.h"

namespace tenon {
namespace {

bool reads_only_constants(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.operands.empty() || node.op->is_random || !node.bodies.empty()) return false;
  return std::all_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) {
    return !operand || graph.constant_of(operand);
  });
}

// Nothing is known to be small when a result's type is not known.
bool has_small_results(const Graph& graph, NodeId id, std::int64_t limit) {
  for (ValueId result : graph.node(id).results) {
    if (!result) continue;
    const Type& type = graph.value(result).type;
    if (!type.is_tensor() || !all_constant(type.tensor().dims)) return false;
    if (byte_count(type.tensor()).constant() > limit) return false;
  }
  return true;
}

}  // namespace

/// Replaces every node that reads only constants by the constant it computes. A result over
/// `max_constant_bytes` stays a node: broadcasts would bloat the program.
Graph fold_constants(Graph graph, const PassOptions& options) {
  for (NodeId id : graph.nodes_in_order()) {
    if (!reads_only_constants(graph, id)) continue;
    if (!has_small_results(graph, id, options.max_constant_bytes)) continue;
    const Node node = graph.node(id);
    std::vector<std::optional<Datum>> operands;
    for (ValueId operand : node.operands) {
      operands.push_back(operand ? std::optional<Datum>(graph.constant_of(operand)->materialise())
                                 : std::nullopt);
    }
    std::vector<bool> wanted;
    for (ValueId result : node.results) wanted.push_back(result.is_valid());
    const std::vector<Datum> values =
        reference::evaluate_op(*node.op, node.attrs, operands, wanted);
    for (std::size_t k = 0; k < values.size(); ++k) {
      if (!node.results[k]) continue;
      Graph::NewNode constant;
      constant.op = &find_op("constant");
      constant.attrs.set("value", Constant(values[k].tensor()));
      const NodeId made = graph.add_node(std::move(constant), id);
      const ValueId value = graph.node(made).results.front();
      graph.replace_uses(node.results[k], value);
      graph.swap_names(node.results[k], value);
    }
    graph.erase(id);
  }
  graph.erase_dead();
  return graph;
}

}  // namespace tenon
