#include "ops/definition/elementwise.h"

namespace tenon::inline ops::mod_op {
namespace {

enum class Sign { Divisor, Dividend };

struct Attrs {
  Sign sign = Sign::Divisor;
};

Expr value(const Attrs& attrs, const Expr& a, const Expr& b) {
  return apply(attrs.sign == Sign::Divisor ? BinaryOp::Modulo : BinaryOp::Remainder, a, b);
}

void gradient(const Attrs&, Gradient& op) {
  op.add("a", op.upstream("y"));
  const Var whole = (op.operand("a") - op.result("y")) / op.operand("b");
  op.add("b", -(op.upstream("y") * call("round", {whole})));
}

}  // namespace

TENON_DEFINE_OP(mod) = BinarySpec<Attrs>{
    .name = "mod",
    .summary = "the remainder of a / b, with the sign of the divisor or of the dividend",
    .takes = reals,
    .attrs = {{"sign", &Attrs::sign, words("divisor dividend")}},
    .value = value,
    .gradient = gradient,
};

}  // namespace tenon::inline ops::mod_op
