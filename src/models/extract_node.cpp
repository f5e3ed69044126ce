#include "models/extract_node.h"

#include <map>
#include <set>

namespace tenon::models {

Graph extract_node(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  Graph alone(graph.name);
  std::map<ValueId, ValueId> copies;
  SymbolRanges symbols;
  std::set<std::string> bound;
  Graph::NewNode copy{node.op, {}, node.attrs, node.bodies, {}, node.name};
  for (const ValueId operand : node.operands) {
    if (!operand) {
      copy.operands.emplace_back();
      continue;
    }
    const auto [known, is_new] = copies.try_emplace(operand);
    if (is_new) {
      const Value& value = graph.value(operand);
      const Constant* constant = graph.constant_of(operand);
      known->second = constant != nullptr ? alone.add_constant(*graph.node(value.producer).op,
                                                               *constant, value.name)
                                          : alone.add_input(value.name, value.type);
      if (constant != nullptr && graph.has_stated_type(operand))
        alone.set_type(known->second, value.type);
      if (value.type.is_tensor()) {
        for (const Dim& dim : value.type.tensor().dims) {
          dim.collect_symbols(symbols);
          if (const auto name = dim.symbol_name()) bound.insert(*name);
        }
      }
    }
    copy.operands.push_back(known->second);
  }
  for (const auto& [name, range] : symbols) {
    if (bound.contains(name)) continue;
    TensorType type;
    type.dtype = DType::Bool;
    type.dims = {Dim::symbol(name, range)};
    alone.add_input(alone.free_name(name), type);
  }
  for (const ValueId result : node.results)
    copy.results.push_back(result ? graph.value(result).name : "_");
  const NodeId made = alone.add_node(std::move(copy));
  const std::vector<ValueId> results = alone.node(made).results;
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (!results[k]) continue;
    const Type& type = graph.value(node.results[k]).type;
    if (alone.value(results[k]).type != type) alone.set_type(results[k], type);
    alone.add_output(results[k]);
  }
  return alone;
}

}  // namespace tenon::models
