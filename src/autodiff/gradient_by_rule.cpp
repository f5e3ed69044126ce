#include "autodiff/gradient_by_rule.h"

#include "autodiff/differentiate.h"
#include "base/error.h"
#include "ir/graph.h"

#include <unordered_map>
#include <unordered_set>

namespace tenon::inline autodiff {
namespace {

// Marks the values of a scratch graph that `value` depends on, up to `stop`.
void mark_needed(const Graph& graph, ValueId value, ValueId stop,
                 std::unordered_set<ValueId>& needed) {
  if (!value || !needed.insert(value).second || value == stop) return;
  const NodeId producer = graph.value(value).producer;
  if (!producer) return;
  for (const ValueId operand : graph.node(producer).operands)
    mark_needed(graph, operand, stop, needed);
}

}  // namespace

Var gradient_by_rule(Builder& build, std::string_view op, Var x, Var y, Var dy,
                     std::string_view name) {
  // The rule is written for a node: it runs on one in a scratch graph, and its nodes are copied
  // from there.
  Builder scratch;
  const Var operand = scratch.input("x", build.type(x.is_valid() ? x : y));
  const Var flow = scratch.input("dy", build.type(dy));
  const Var result = scratch.call(op, {operand});
  const Var made = differentiate(scratch, {{result, flow}}, {operand}).front();
  const Graph& graph = scratch.graph();
  const ValueId last(made.id());
  std::unordered_set<ValueId> needed;
  mark_needed(graph, last, y.is_valid() ? ValueId(result.id()) : ValueId(), needed);
  if (!x.is_valid() && needed.contains(ValueId(operand.id())))
    throw Error(concat("the gradient of ", op, " needs its operand, which is unknown here"));
  std::unordered_map<ValueId, Var> taken = {{ValueId(operand.id()), x}, {ValueId(flow.id()), dy}};
  if (y.is_valid()) taken[ValueId(result.id())] = y;
  for (const NodeId id : graph.nodes_in_order()) {
    const Node& node = graph.node(id);
    const ValueId value = node.results.front();
    if (taken.contains(value) || !needed.contains(value)) continue;
    std::vector<Var> operands;
    for (const ValueId each : node.operands) operands.push_back(each ? taken.at(each) : Var());
    const std::string called = value == last ? std::string(name) : "";
    taken[value] = build.call_all(node.op->name, operands, node.attrs, {called}).front();
  }
  return taken.at(last);
}

}  // namespace tenon::inline autodiff
