#include "expr/lowering.h"
#include "ops/definition/op_spec.h"
#include "ops/families/normalization.h"

namespace tenon::inline ops::mean_variance_norm_op {
namespace {

struct Attrs {
  std::vector<std::int64_t> axes = {0, 2, 3};
  double epsilon = 1e-9;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  require_floats(in);
  normal_axes("mean_variance_norm", attrs.axes, in["x"].rank());
  return in["x"];
}

void lower(const Attrs& attrs, Lowering& op) {
  const DType dtype = op.operand_type("x").dtype;
  const Expr x = cast(op.operand("x"), statistics_dtype({}, dtype));
  const Axes axes = normal_axes("mean_variance_norm", attrs.axes, x.rank());
  const Expr centred = x - mean_over(x, axes);
  const Expr deviation = sqrt(mean_over(centred * centred, axes));
  op.define("y", cast(centred / (deviation + attrs.epsilon), dtype));
}

// Epsilon only guards the quotient; the gradient treats it as part of the variance.
void gradient(const Attrs& attrs, Gradient& op) {
  const Axes axes = normal_axes("mean_variance_norm", attrs.axes, op.operand_type("x").rank());
  const StandardizedVar y = standardize(op.operand("x"), axes, attrs.epsilon * attrs.epsilon);
  op.add("x", standardize_gradient(y, axes, op.upstream("y")));
}

}  // namespace

TENON_DEFINE_OP(mean_variance_norm) = OpSpec<Attrs>{
    .name = "mean_variance_norm",
    .summary = "(x - mean) / (deviation + epsilon), both taken over `axes`",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"axes", &Attrs::axes}, {"epsilon", &Attrs::epsilon}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = logical_order(),
    .examples = {"x: F n c h w"},
};

}  // namespace tenon::inline ops::mean_variance_norm_op
