#include "frontends/onnx/op_call.h"

#include "base/error.h"
#include "ops/definition/registry.h"

namespace tenon::frontends::onnx {
namespace {

// Lists of axes and extents are short; a splat in a tiny file may claim any length.
constexpr std::int64_t kMaxListed = std::int64_t{1} << 20;

void require_short(const NodeImport& node, std::size_t input) {
  const Type& type = node.type(node.input(input));
  if (!type.is_tensor() || provably_at_most(element_count(type.tensor()), kMaxListed)) return;
  if (!element_count(type.tensor()).is_constant()) return;
  throw Error(concat("input ", input, " has too many elements"))
      .expected("at most ", kMaxListed)
      .got(type);
}

const Tensor& require_one(const Tensor& value, std::size_t input) {
  if (value.size() == 1) return value;
  throw Error(concat("input ", input, " must hold one element")).got(value.type());
}

}  // namespace

std::optional<std::int64_t> constant_integer(const NodeImport& node, std::size_t input) {
  const std::optional<Tensor> value = node.constant_input(input);
  if (!value) return std::nullopt;
  return require_one(*value, input).integer_at(0);
}

OpCall::OpCall(NodeImport& node, std::string_view op) : node_(node), op_(find_op(op)) {}

OpCall& OpCall::operand(std::string_view name, Var value) {
  const auto position = op_.operand_index(name);
  TENON_ASSERT(position, concat(op_.name, " has an operand called ", name));
  if (*position >= operands_.size()) operands_.resize(*position + 1);
  operands_[*position] = value;
  return *this;
}

OpCall& OpCall::operands(std::vector<Var> values) {
  operands_ = std::move(values);
  return *this;
}

OpCall& OpCall::attr(Attr attr) {
  attrs_.push_back(std::move(attr));
  return *this;
}

OpCall& OpCall::dynamic(std::string_view attr_name, std::size_t input) {
  if (!node_.has_input(input)) return *this;
  require_short(node_, input);
  const std::optional<Tensor> value = node_.constant_input(input);
  if (!value) return operand(attr_name, node_.input(input));
  std::string name(attr_name);
  const AttrDef* def = op_.find_attr(attr_name);
  TENON_ASSERT(def, concat(op_.name, " has an attribute called ", attr_name));
  if (def->kind == AttrKind::Integers) return attr({std::move(name), value->integers()});
  if (def->kind == AttrKind::Reals) return attr({std::move(name), value->reals()});
  require_one(*value, input);
  if (def->kind == AttrKind::Real) return attr({std::move(name), value->real_at(0)});
  return attr({std::move(name), value->integer_at(0)});
}

Var OpCall::result() const { return results(1).front(); }

std::vector<Var> OpCall::results(std::size_t count) const {
  return node_.build.call_all(op_.name, operands_, attrs_, std::vector<std::string>(count));
}

}  // namespace tenon::frontends::onnx
