#include "ops/definition/elementwise.h"

namespace tenon::inline ops::clip_op {
namespace {

TensorType infer(const NoAttrs&, const OperandTypes& in) {
  TensorType type = require_elements(in, "x", reals);
  for (const char* bound : {"min", "max"}) {
    if (!in.has(bound)) continue;
    require_same_dtype("clip", type, in[bound]);
    type = broadcast_type("clip", type, in[bound], type.dtype);
  }
  return type;
}

// The upper bound is applied last, so it wins if the bounds cross.
void lower(const NoAttrs&, Lowering& op) {
  Expr y = op.operand("x");
  if (op.has("min")) y = max(y, op.operand("min"));
  if (op.has("max")) y = min(y, op.operand("max"));
  op.define("y", y);
}

// The gradient flows to the bound that clips x, or to x.
void gradient(const NoAttrs&, Gradient& op) {
  const Var x = op.operand("x");
  Var rest = op.upstream("y"), y = x;
  if (op.has("min")) y = call("maximum", {y, op.operand("min")});
  if (op.has("max")) {
    const Var is_above = call("greater", {y, op.operand("max")});
    op.add("max", choose(is_above, rest, 0));
    rest = choose(is_above, 0, rest);
  }
  if (op.has("min")) {
    const Var is_below = call("less", {x, op.operand("min")});
    op.add("min", choose(is_below, rest, 0));
    rest = choose(is_below, 0, rest);
  }
  op.add("x", rest);
}

}  // namespace

TENON_DEFINE_OP(clip) = OpSpec<NoAttrs>{
    .name = "clip",
    .summary = "x held between min and max, each optional; NaN stays NaN",
    .operands = {"x", optional("min"), optional("max")},
    .results = {"y"},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .examples = {"x: T a b; min: T; max: T"},
};

}  // namespace tenon::inline ops::clip_op
