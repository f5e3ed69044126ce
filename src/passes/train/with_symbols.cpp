#include "passes/train/train.h"

namespace tenon {
namespace {

AttrValue substituted(const AttrValue& value, const DimBindings& values) {
  if (const auto* dim = std::get_if<Dim>(&value)) return dim->substitute(values);
  if (const auto* dims = std::get_if<Dims>(&value)) return substitute(*dims, values);
  if (const auto* type = std::get_if<Type>(&value)) return substitute(*type, values);
  return value;
}

}  // namespace

Graph with_symbols(Graph graph, const DimBindings& values) {
  for (ValueId input : graph.inputs())
    graph.set_type(input, substitute(graph.value(input).type, values));
  for (NodeId id : graph.nodes_in_order()) {
    Node& node = graph.mutable_node(id);
    for (Graph& body : node.bodies) body = with_symbols(std::move(body), values);
    Attributes attrs = node.attrs;
    for (const auto& [name, value] : node.attrs) attrs.set(name, substituted(value, values));
    node.attrs = std::move(attrs);
    // What was stated stays so: a constant's layout, for one, is nothing that inference knows.
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

}  // namespace tenon
