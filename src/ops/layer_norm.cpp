#include "expr/lowering.h"
#include "ops/definition/op_spec.h"
#include "ops/families/normalization.h"

namespace tenon::inline ops::layer_norm_op {
namespace {

ResultTypes infer(const TrailingNormAttrs& attrs, const OperandTypes& in) {
  require_floats(in);
  const TensorType& x = in["x"];
  TensorType statistics{statistics_dtype(attrs.stash, x.dtype), x.dims, {}};
  for (std::int64_t axis : attrs.axes("layer_norm", x.rank())) {
    statistics.dims[static_cast<std::size_t>(axis)] = 1;
  }
  require_broadcast_to_x(in, "scale");
  if (in.has("bias")) require_broadcast_to_x(in, "bias");
  return {x, statistics, statistics};
}

void lower(const TrailingNormAttrs& attrs, Lowering& op) {
  const DType wide = statistics_dtype(attrs.stash, op.operand_type("x").dtype);
  const Expr x = cast(op.operand("x"), wide);
  const Standardized standard = standardize(x, attrs.axes("layer_norm", x.rank()), attrs.epsilon);
  Expr y = standard.value * cast(op.operand("scale"), wide);
  if (op.has("bias")) y = y + cast(op.operand("bias"), wide);
  op.define("y", cast(y, op.result_type("y").dtype));
  op.define("mean", standard.mean);
  op.define("inverse_deviation", standard.inverse_deviation);
}

void gradient(const TrailingNormAttrs& attrs, Gradient& op) {
  const Axes axes = attrs.axes("layer_norm", op.operand_type("x").rank());
  const DType dtype = op.operand_type("x").dtype;
  const StandardizedVar y = standardize(op.operand("x"), axes, attrs.epsilon);
  const Var dy = op.upstream("y");
  op.add("x", standardize_gradient(y, axes, dy * op.operand("scale")));
  op.add("scale", dy * y.value);
  if (op.has("bias")) op.add("bias", dy);
  if (op.has_upstream("mean")) {
    op.add("x", share_of_mean(cast_to(op.upstream("mean"), dtype), op.operand("x"), axes));
  }
  if (op.has_upstream("inverse_deviation")) {
    const Var slope = y.value * y.inverse_deviation * y.inverse_deviation;
    op.add("x", -share_of_mean(cast_to(op.upstream("inverse_deviation"), dtype) * slope,
                               op.operand("x"), axes));
  }
}

}  // namespace

TENON_DEFINE_OP(layer_norm) = OpSpec<TrailingNormAttrs>{
    .name = "layer_norm",
    .summary = "mean 0 and variance 1 over the axes from `axis` on, then scaled and shifted",
    .operands = {"x", "scale", optional("bias")},
    .results = {"y", optional("mean"), optional("inverse_deviation")},
    .attrs = trailing_norm_fields(),
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = logical_order(),
    .examples = {"x: F a b c; scale: F c; bias: F c", "x: F a c; scale: F c"},
};

}  // namespace tenon::inline ops::layer_norm_op
