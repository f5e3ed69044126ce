#include "ops/elementwise.h"

#include "base/text.h"

namespace tenon {
namespace {

Elements elements_of(DType dtype) {
  if (is_float(dtype)) return floats;
  if (is_integer(dtype)) return integers;
  if (is_complex(dtype)) return complexes;
  return dtype == DType::Bool ? bools : texts;
}

std::string to_string(Elements elements) {
  std::vector<std::string> kinds;
  if (elements.kinds & floats.kinds) kinds.push_back("floats");
  if (elements.kinds & integers.kinds) kinds.push_back("integers");
  if (elements.kinds & bools.kinds) kinds.push_back("bool");
  if (elements.kinds & complexes.kinds) kinds.push_back("complex numbers");
  if (elements.kinds & texts.kinds) kinds.push_back("strings");
  return join(kinds, ", ");
}

Var compare(std::string_view op, Var x, double bound) { return call(op, {x, number(bound, x)}); }

}  // namespace

template struct UnarySpec<NoAttrs>;
template struct BinarySpec<NoAttrs>;

const TensorType& require_elements(const OperandTypes& in, std::string_view operand,
                                   Elements elements) {
  const TensorType& type = in[operand];
  if (elements_of(type.dtype).kinds & elements.kinds) return type;
  throw Error(concat(in.op_name(), ": operand '", operand, "' has an element type it cannot have"))
      .expected(to_string(elements))
      .got(type);
}

Var call(std::string_view op, const std::vector<Var>& operands, const std::vector<Attr>& attrs) {
  return operands.front().builder().call(op, operands, attrs);
}

Var choose(Var condition, Var a, Var b) { return call("where", {condition, a, b}); }
Var choose(Var condition, Var a, double b) { return choose(condition, a, number(b, a)); }
Var choose(Var condition, double a, Var b) { return choose(condition, number(a, b), b); }
Var choose(Var condition, double a, double b, Var like) {
  return choose(condition, number(a, like), number(b, like));
}
Var number(double value, Var like) { return like.builder().scalar(value, like); }
Var is_greater(Var x, double bound) { return compare("greater", x, bound); }
Var is_less(Var x, double bound) { return compare("less", x, bound); }

void gradient_of_extreme(const NoAttrs&, Gradient& op) {
  const Var y = op.result("y"), dy = op.upstream("y");
  const Var half = choose(call("equal", {op.operand("a"), op.operand("b")}), 0.5, 1, dy) * dy;
  op.add("a", choose(call("equal", {op.operand("a"), y}), half, 0));
  op.add("b", choose(call("equal", {op.operand("b"), y}), half, 0));
}

Expr softplus(const Expr& x) { return max(x, 0.0) + apply(UnaryOp::Log1p, exp(-abs(x))); }

}  // namespace tenon
