#include "ops/definition/elementwise.h"

namespace tenon::inline ops {
namespace {

Var compare(std::string_view op, Var x, double bound) { return call(op, {x, number(bound, x)}); }

}  // namespace

template struct UnarySpec<NoAttrs>;
template struct BinarySpec<NoAttrs>;

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

}  // namespace tenon::inline ops
