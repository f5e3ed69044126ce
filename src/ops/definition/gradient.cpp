#include "ops/definition/gradient.h"

#include "base/error.h"

namespace tenon::inline ops {

Gradient::Gradient(Builder& builder, const Graph& graph, NodeId node, std::vector<Var> upstream,
                   Differentiate differentiate)
    : builder_(builder),
      graph_(graph),
      node_(node),
      upstream_(std::move(upstream)),
      gradients_(graph.node(node).operands.size()),
      differentiate_(differentiate) {}

std::size_t Gradient::position_of(std::string_view operand) const {
  const OpDef& op = *graph_.node(node_).op;
  const auto index = op.operand_index(operand);
  TENON_ASSERT(index.has_value(), concat(op.name, " has an operand called ", operand));
  return *index;
}

TensorType Gradient::type_of(ValueId value) const { return graph_.value(value).type.tensor(); }

bool Gradient::has(std::string_view operand) const {
  const std::vector<ValueId>& operands = graph_.node(node_).operands;
  const std::size_t position = position_of(operand);
  return position < operands.size() && operands[position].is_valid();
}

Var Gradient::operand(std::string_view name) const {
  TENON_ASSERT(has(name), concat("operand ", name, " is given"));
  return {&builder_, graph_.node(node_).operands[position_of(name)].index()};
}

Var Gradient::result(std::string_view name) const {
  const Node& node = graph_.node(node_);
  return {&builder_, node.results[*node.op->result_index(name)].index()};
}

std::vector<Var> Gradient::variadic(std::string_view name) const {
  const std::vector<ValueId>& operands = graph_.node(node_).operands;
  std::vector<Var> all;
  for (std::size_t k = position_of(name); k < operands.size(); ++k) {
    all.emplace_back(&builder_, operands[k].index());
  }
  return all;
}

Var Gradient::upstream(std::string_view result) const {
  return upstream(*graph_.node(node_).op->result_index(result));
}

Var Gradient::upstream(std::size_t position) const {
  if (position < upstream_.size() && upstream_[position].is_valid()) return upstream_[position];
  const TensorType type = type_of(graph_.node(node_).results[position]);
  return expand_to(builder_.constant(Tensor::scalar(type.dtype, 0)), type.dims);
}

bool Gradient::has_upstream(std::string_view result) const {
  const std::size_t position = *graph_.node(node_).op->result_index(result);
  return position < upstream_.size() && upstream_[position].is_valid();
}

TensorType Gradient::operand_type(std::string_view name) const {
  return type_of(ValueId(operand(name).id()));
}

TensorType Gradient::result_type(std::string_view name) const {
  return type_of(ValueId(result(name).id()));
}

void Gradient::add(std::string_view operand, Var gradient) { add(position_of(operand), gradient); }

void Gradient::add(std::size_t position, Var gradient) {
  TENON_ASSERT(position < gradients_.size(), "the operand is given");
  const Dims dims = type_of(graph_.node(node_).operands[position]).dims;
  const Var fitting = expand_to(sum_to_shape(gradient, dims), dims);
  Var& total = gradients_[position];
  total = total.is_valid() ? total + fitting : fitting;
}

}  // namespace tenon::inline ops
