#include "autodiff/differentiate.h"

#include "base/error.h"
#include "expr/lowering.h"
#include "ops/definition/var_ops.h"

#include <algorithm>

namespace tenon::inline autodiff {
namespace {

bool carries_gradient(const Type& type) {
  if (!type.is_tensor()) return true;  // their ops give the reason for a missing gradient
  return is_float(type.tensor().dtype) || is_complex(type.tensor().dtype);
}

// Values that depend on one of `xs`, and so need gradients.
IdMap<ValueId, char> dependents_of(const Graph& graph, const std::vector<Var>& xs) {
  IdMap<ValueId, char> depends(graph.value_id_bound(), 0);
  for (Var x : xs) depends[ValueId(x.id())] = 1;
  for (NodeId id : graph.nodes_in_order()) {
    const Node& node = graph.node(id);
    bool any = false;
    for (ValueId operand : node.operands) any |= operand && depends[operand] != 0;
    for (ValueId result : node.results) {
      if (result && any && carries_gradient(graph.value(result).type)) depends[result] = 1;
    }
  }
  return depends;
}

// Gradient rules expect constant attributes, so each must be known here.
Attributes complete_attributes(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  std::vector<Tensor> held(node.operands.size());
  std::vector<const Tensor*> dynamic(node.operands.size(), nullptr);
  for (std::size_t k = 0; k < node.operands.size() && k < node.op->operands.size(); ++k) {
    if (!node.op->operands[k].is_dynamic_attribute || !node.operands[k]) continue;
    const Constant* constant = graph.constant_of(node.operands[k]);
    if (!constant) {
      throw Error(concat("cannot differentiate through ", node.op->name, ": '",
                         node.op->operands[k].name, "' is only known at run time"),
                  ErrorKind::Unsupported)
          .at(graph.location(id));
    }
    held[k] = constant->materialise();
    dynamic[k] = &held[k];
  }
  return bind_dynamic_attributes(*node.op, node.attrs, dynamic);
}

// Applies the gradient rule of one node to its upstream gradients.
std::vector<Var> operand_gradients(Builder& builder, NodeId id, std::vector<Var> upstream) {
  const Graph& graph = builder.graph();
  const OpDef& op = *graph.node(id).op;
  if (!op.gradient) {
    const std::string reason =
        op.no_gradient_reason.empty() ? "it has no gradient yet" : op.no_gradient_reason;
    throw Error(concat("cannot differentiate through ", op.name, ": ", reason),
                ErrorKind::Unsupported)
        .at(graph.location(id));
  }
  Gradient rule(builder, graph, id, std::move(upstream), differentiate);
  try {
    op.gradient(complete_attributes(graph, id), rule);
  } catch (PlacedError& error) {
    error.locate(graph.location(id));
    throw;
  }
  return rule.gradients();
}

Var filled_like(Builder& builder, Var value, double fill) {
  const TensorType type = builder.type(value).tensor();
  return expand_to(builder.scalar(fill, value), type.dims);
}

}  // namespace

std::vector<Var> differentiate(Builder& builder, const std::vector<Flow>& flows,
                               const std::vector<Var>& xs, const OnGradient& on_gradient) {
  Graph& graph = builder.graph();
  const IdMap<ValueId, char> depends = dependents_of(graph, xs);
  std::vector<NodeId> backwards;
  for (NodeId id : graph.nodes_in_order()) backwards.push_back(id);
  std::reverse(backwards.begin(), backwards.end());

  IdMap<ValueId, Var> gradients;
  const auto add = [&](ValueId value, Var more) {
    Var& total = gradients[value];
    total = total.is_valid() ? total + more : more;
  };
  for (const Flow& flow : flows) add(ValueId(flow.value.id()), flow.gradient);
  for (NodeId id : backwards) {
    std::vector<Var> upstream;
    bool is_reached = false;
    for (ValueId result : graph.node(id).results) {
      upstream.push_back(result && depends[result] ? gradients[result] : Var());
      is_reached |= upstream.back().is_valid();
    }
    std::vector<bool> wanted;
    for (ValueId operand : graph.node(id).operands)
      wanted.push_back(operand && depends[operand] != 0);
    // A requested value may be intermediate: gradients stop at it if its operands are not
    // requested.
    if (!is_reached || std::ranges::find(wanted, true) == wanted.end()) continue;
    const NodeId first(graph.node_id_bound());
    const std::vector<Var> found = operand_gradients(builder, id, std::move(upstream));
    if (on_gradient) on_gradient(id, first);
    for (std::size_t k = 0; k < found.size(); ++k) {
      if (wanted[k] && found[k].is_valid()) add(graph.node(id).operands[k], found[k]);
    }
  }
  std::vector<Var> results;
  results.reserve(xs.size());
  for (Var x : xs) results.push_back(gradients[ValueId(x.id())]);
  return results;
}

std::vector<Var> differentiate(Builder& builder, const std::vector<Flow>& flows,
                               const std::vector<Var>& xs) {
  return differentiate(builder, flows, xs, {});
}

std::vector<Var> differentiate(Builder& builder, Var y, const std::vector<Var>& xs) {
  std::vector<Var> results = differentiate(builder, {{y, filled_like(builder, y, 1)}}, xs);
  for (std::size_t k = 0; k < xs.size(); ++k) {
    if (!results[k].is_valid()) results[k] = filled_like(builder, xs[k], 0);
  }
  return results;
}

}  // namespace tenon::inline autodiff
