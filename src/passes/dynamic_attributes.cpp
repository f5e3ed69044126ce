#include "passes/dynamic_attributes.h"

#include "base/error.h"
#include "expr/lowering.h"
#include "passes/rewrite/match.h"

#include <algorithm>

namespace tenon::passes {
namespace {

// Returns the attribute's value, or nullopt if it is only known at run time.
std::optional<AttrValue> settled(const Graph& graph, const Node& node, std::size_t position) {
  const ValueId operand = node.operands[position];
  const std::string& name = node.op->operands[position].name;
  if (const Constant* constant = graph.constant_of(operand)) {
    const Tensor tensor = constant->materialise();
    std::vector<const Tensor*> values(node.operands.size(), nullptr);
    values[position] = &tensor;
    const Attributes bound = bind_dynamic_attributes(*node.op, {}, values);
    const AttrValue* value = bound.find(name);
    // A value equal to the default is omitted.
    return value ? *value : node.op->find_attr(name)->default_value;
  }
  const Dims* known = graph.known_elements(operand);
  if (!known || !std::all_of(known->begin(), known->end(), rewrite::is_written_down)) return {};
  switch (node.op->find_attr(name)->kind) {
    case AttrKind::Integers:
      return *known;
    case AttrKind::Integer:
      if (known->size() == 1) return known->front();
      return {};
    default:
      return {};
  }
}

bool settle(Graph& graph, NodeId id, std::size_t position) {
  const std::string name = graph.node(id).op->operands[position].name;
  try {
    const std::optional<AttrValue> value = settled(graph, graph.node(id), position);
    if (!value) return false;
    Attributes attrs = graph.node(id).attrs;
    attrs.set(name, *value);
    graph.node(id).op->canonical_attributes(std::move(attrs));  // throws before anything is changed
    graph.set_operand(id, position, ValueId{});
    graph.set_attribute(id, name, *value);
  } catch (const Error&) {
    return false;  // the op requires numbers here
  }
  return true;
}

}  // namespace

std::size_t resolve_dynamic_attributes(Graph& graph, NodeId id, Reinference& types) {
  std::size_t count = 0;
  const OpDef& op = *graph.node(id).op;
  for (std::size_t k = 0; k < op.operands.size(); ++k) {
    const std::vector<ValueId>& operands = graph.node(id).operands;
    if (!op.operands[k].is_dynamic_attribute || k >= operands.size() || !operands[k]) continue;
    if (settle(graph, id, k)) ++count;
  }
  if (count > 0) types.mark(id);
  types.refresh(id);
  return count;
}

std::size_t resolve_dynamic_attributes(Graph& graph) {
  std::size_t count = 0;
  Reinference types(graph);
  for (NodeId id : graph.nodes_in_order()) {
    types.refresh(id);
    count += resolve_dynamic_attributes(graph, id, types);
  }
  if (count > 0) graph.erase_dead();
  return count;
}

}  // namespace tenon::passes
