#include "passes/train/train.h"

namespace tenon::passes {
Graph with_symbols(Graph graph, const DimBindings& values) {
  for (ValueId input : graph.inputs())
    graph.set_type(input, substitute(graph.value(input).type, values));
  for (NodeId id : graph.nodes_in_order()) {
    Node& node = graph.mutable_node(id);
    for (Graph& body : node.bodies) body = with_symbols(std::move(body), values);
    node.attrs = substitute(node.attrs, values);
    // Keeps stated types: inference does not know a constant's layout, for example.
    std::vector<std::pair<ValueId, Type>> stated;
    for (ValueId result : node.results) {
      if (!result || !graph.has_stated_type(result)) continue;
      stated.emplace_back(result, substitute(graph.value(result).type, values));
    }
    graph.infer(id);
    for (auto& [result, type] : stated) graph.set_type(result, std::move(type));
  }
  return graph;
}

}  // namespace tenon::passes
