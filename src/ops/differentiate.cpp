#include "ops/differentiate.h"

#include <algorithm>

#include "base/error.h"
#include "ops/gradient.h"
#include "ops/lowering.h"
#include "ops/var_ops.h"

namespace tenon {
namespace {

// The values that depend on one of `xs`, which is where gradients have to flow.
IdMap<ValueId, char> dependents_of(const Graph& graph, const std::vector<Var>& xs) {
  IdMap<ValueId, char> depends(graph.value_id_bound(), 0);
  for (Var x : xs) depends[ValueId(x.id())] = 1;
  for (NodeId id : graph.nodes_in_order()) {
    const Node& node = graph.node(id);
    bool any = false;
    for (ValueId operand : node.operands) any |= operand && depends[operand] != 0;
    for (ValueId result : node.results) {
      if (result && any) depends[result] = 1;
    }
  }
  return depends;
}

// The rules are written against plain attributes, so each must be known by now.
Attributes complete_attributes(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  std::vector<Tensor> held(node.operands.size());
  std::vector<const Tensor*> late(node.operands.size(), nullptr);
  for (std::size_t k = 0; k < node.operands.size() && k < node.op->operands.size(); ++k) {
    if (!node.op->operands[k].is_late_attribute || !node.operands[k]) continue;
    const Constant* constant = graph.constant_of(node.operands[k]);
    if (!constant) {
      throw Error(concat("cannot differentiate through ", node.op->name, ": '",
                         node.op->operands[k].name, "' is only known at run time"),
                  ErrorKind::Unsupported)
          .at(graph.location(id));
    }
    held[k] = constant->materialise();
    late[k] = &held[k];
  }
  return bind_late_attributes(*node.op, node.attrs, late);
}

}  // namespace

std::vector<Var> differentiate(Builder& builder, Var y, const std::vector<Var>& xs) {
  Graph& graph = builder.graph();
  const IdMap<ValueId, char> depends = dependents_of(graph, xs);
  std::vector<NodeId> backwards;
  for (NodeId id : graph.nodes_in_order()) backwards.push_back(id);
  std::reverse(backwards.begin(), backwards.end());

  IdMap<ValueId, Var> gradients;
  const auto filled_like = [&](Var value, double fill) {
    const TensorType type = builder.type(value).tensor();
    return expand_to(builder.scalar(fill, value), type.dims);
  };
  gradients[ValueId(y.id())] = filled_like(y, 1);
  for (NodeId id : backwards) {
    std::vector<Var> upstream;
    bool flows = false;
    for (ValueId result : graph.node(id).results) {
      upstream.push_back(result && depends[result] ? gradients[result] : Var());
      flows |= upstream.back().is_valid();
    }
    if (!flows) continue;
    const OpDef& op = *graph.node(id).op;
    if (!op.gradient) {
      const std::string reason = op.no_gradient_reason.empty() ? "it has no gradient yet" : op.no_gradient_reason;
      throw Error(concat("cannot differentiate through ", op.name, ": ", reason), ErrorKind::Unsupported)
          .at(graph.location(id));
    }
    Gradient rule(builder, graph, id, std::move(upstream));
    op.gradient(complete_attributes(graph, id), rule);
    for (std::size_t k = 0; k < rule.gradients().size(); ++k) {
      const ValueId operand = graph.node(id).operands[k];
      const Var more = rule.gradients()[k];
      if (!operand || !depends[operand] || !more.is_valid()) continue;
      Var& total = gradients[operand];
      total = total.is_valid() ? total + more : more;
    }
  }
  std::vector<Var> results;
  for (Var x : xs) {
    const Var found = gradients[ValueId(x.id())];
    results.push_back(found.is_valid() ? found : filled_like(x, 0));
  }
  return results;
}

}  // namespace tenon
