#include "expr/lowering.h"
#include "ops/definition/op_spec.h"
#include "ops/families/normalization.h"

namespace tenon::inline ops::instance_norm_op {
namespace {

struct Attrs {
  std::int64_t axis = 1;
  double epsilon = 1e-5;
};

std::size_t channel_axis(const Attrs& attrs, std::size_t rank) {
  return normal_axis("instance_norm", attrs.axis, rank);
}

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  require_floats(in);
  const std::size_t axis = channel_axis(attrs, in["x"].rank());
  require_vector(in, "scale", axis);
  require_vector(in, "bias", axis);
  return in["x"];
}

void lower(const Attrs& attrs, Lowering& op) {
  const DType wide = statistics_dtype({}, op.operand_type("x").dtype);
  const Expr x = cast(op.operand("x"), wide);
  const std::size_t axis = channel_axis(attrs, x.rank());
  const Expr value = standardize(x, axes_inside(axis, x.rank()), attrs.epsilon).value;
  const Expr scale = along_axis(cast(op.operand("scale"), wide), axis, x.rank());
  const Expr bias = along_axis(cast(op.operand("bias"), wide), axis, x.rank());
  op.define("y", cast(value * scale + bias, op.result_type("y").dtype));
}

void gradient(const Attrs& attrs, Gradient& op) {
  const std::size_t rank = op.operand_type("x").rank();
  const std::size_t axis = channel_axis(attrs, rank);
  const Axes axes = axes_inside(axis, rank);
  const StandardizedVar y = standardize(op.operand("x"), axes, attrs.epsilon);
  const Var dy = op.upstream("y");
  op.add("x", standardize_gradient(y, axes, dy * along_axis(op.operand("scale"), axis, rank)));
  op.add("scale", sum_along_axis(dy * y.value, axis));
  op.add("bias", sum_along_axis(dy, axis));
}

}  // namespace

TENON_DEFINE_OP(instance_norm) = OpSpec<Attrs>{
    .name = "instance_norm",
    .summary = "mean 0 and variance 1 for each sample and channel, then scaled and shifted",
    .operands = {"x", "scale", "bias"},
    .results = {"y"},
    .attrs = {{"axis", &Attrs::axis}, {"epsilon", &Attrs::epsilon}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = follows_axis("axis"),
    .examples = {"x: F n c h; scale: F c; bias: F c"},
};

}  // namespace tenon::inline ops::instance_norm_op
