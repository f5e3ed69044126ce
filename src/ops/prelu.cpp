#include "ops/definition/elementwise.h"

namespace tenon::inline ops::prelu_op {
namespace {

TensorType infer(const NoAttrs&, const OperandTypes& in) {
  const TensorType& x = require_elements(in, "x", reals);
  require_same_dtype("prelu", x, in["slope"]);
  return broadcast_type("prelu", x, in["slope"], x.dtype);
}

void lower(const NoAttrs&, Lowering& op) {
  const Expr x = op.operand("x");
  op.define("y", select(x < 0.0, x * op.operand("slope"), x));
}

void gradient(const NoAttrs&, Gradient& op) {
  const Var x = op.operand("x"), dy = op.upstream("y");
  const Var is_negative = is_less(x, 0);
  op.add("x", choose(is_negative, dy * op.operand("slope"), dy));
  op.add("slope", choose(is_negative, dy * x, 0));
}

}  // namespace

TENON_DEFINE_OP(prelu) = OpSpec<NoAttrs>{
    .name = "prelu",
    .summary = "x where it is positive, else slope * x; slope is broadcast",
    .operands = {"x", "slope"},
    .results = {"y"},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .examples = {"x: F n c h; slope: F c 1"},
};

}  // namespace tenon::inline ops::prelu_op
