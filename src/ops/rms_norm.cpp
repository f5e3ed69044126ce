#include "expr/lowering.h"
#include "ops/definition/op_spec.h"
#include "ops/families/normalization.h"

namespace tenon::inline ops::rms_norm_op {
namespace {

TensorType infer(const TrailingNormAttrs& attrs, const OperandTypes& in) {
  require_floats(in, {"x", "scale"});
  const TensorType& x = in["x"];
  normal_axis("rms_norm", attrs.axis, x.rank());
  require_broadcast_to_x(in, "scale");
  return {in["scale"].dtype, x.dims, x.layout};
}

void lower(const TrailingNormAttrs& attrs, Lowering& op) {
  const DType wide = statistics_dtype(attrs.stash, op.operand_type("x").dtype);
  const Expr x = cast(op.operand("x"), wide);
  const Expr square = mean_over(x * x, attrs.axes("rms_norm", x.rank()));
  const Expr y = x / sqrt(square + attrs.epsilon) * cast(op.operand("scale"), wide);
  op.define("y", cast(y, op.result_type("y").dtype));
}

void gradient(const TrailingNormAttrs& attrs, Gradient& op) {
  const DType x_dtype = op.operand_type("x").dtype, dtype = op.operand_type("scale").dtype;
  const Var x = cast_to(op.operand("x"), dtype);
  const Axes axes = attrs.axes("rms_norm", op.build().rank(x));
  const Var root = op.build().call("sqrt", {mean_over(x * x, axes) + attrs.epsilon});
  const Var y = x / root, dy = op.upstream("y");
  const Var scaled = dy * op.operand("scale");
  op.add("x", cast_to((scaled - y * mean_over(scaled * y, axes)) / root, x_dtype));
  op.add("scale", dy * y);
}

}  // namespace

TENON_DEFINE_OP(rms_norm) = OpSpec<TrailingNormAttrs>{
    .name = "rms_norm",
    .summary = "x divided by its root mean square over the axes from `axis` on, times scale",
    .operands = {"x", "scale"},
    .results = {"y"},
    .attrs = trailing_norm_fields(),
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = logical_order(),
    .examples = {"x: F a b c; scale: F c"},
};

}  // namespace tenon::inline ops::rms_norm_op
