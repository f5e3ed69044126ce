#include "frontends/onnx/op_call.h"

#include "base/error.h"
#include "ops/registry.h"

namespace tenon::onnx {

OpCall::OpCall(NodeImport& node, std::string_view op) : node_(node), op_(find_op(op)) {}

OpCall& OpCall::operand(std::string_view name, Var value) {
  const auto position = op_.operand_index(name);
  TENON_ASSERT(position, concat(op_.name, " has an operand called ", name));
  if (*position >= operands_.size()) operands_.resize(*position + 1);
  operands_[*position] = value;
  return *this;
}

OpCall& OpCall::attr(Attr attr) {
  attrs_.push_back(std::move(attr));
  return *this;
}

OpCall& OpCall::late(std::string_view attr_name, std::size_t input) {
  if (!node_.has_input(input)) return *this;
  const std::optional<Tensor> value = node_.constant_input(input);
  if (!value) return operand(attr_name, node_.input(input));
  std::string name(attr_name);
  const AttrDef* def = op_.find_attr(attr_name);
  TENON_ASSERT(def, concat(op_.name, " has an attribute called ", attr_name));
  if (def->kind == AttrKind::Integers) return attr({std::move(name), value->integers()});
  if (def->kind == AttrKind::Reals) return attr({std::move(name), value->reals()});
  if (value->size() != 1) {
    throw Error(concat("input ", input, " must hold one element")).got(value->type());
  }
  if (def->kind == AttrKind::Real) return attr({std::move(name), value->real_at(0)});
  return attr({std::move(name), value->integer_at(0)});
}

Var OpCall::result() const { return results(1).front(); }

std::vector<Var> OpCall::results(std::size_t count) const {
  return node_.build.call_all(op_.name, operands_, attrs_, std::vector<std::string>(count));
}

}  // namespace tenon::onnx
