#include "ops/lowering.h"
#include "ops/normalization.h"
#include "ops/op_spec.h"

namespace tenon {
namespace {

struct Attrs {
  std::int64_t axis = -1;
  double epsilon = 1e-5;
  std::optional<DType> stash;
};

Axes normalized_axes(const Attrs& attrs, std::size_t rank) {
  return axes_from(normal_axis("rms_norm", attrs.axis, rank), rank);
}

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType& x = in["x"];
  normal_axis("rms_norm", attrs.axis, x.rank());
  broadcast_type("rms_norm", x, in["scale"], x.dtype);
  return {in["scale"].dtype, x.dims, x.layout};
}

void lower(const Attrs& attrs, Lowering& op) {
  const DType wide = statistics_dtype(attrs.stash, op.operand_type("x").dtype);
  const Expr x = cast(op.operand("x"), wide);
  const Expr square = mean_over(x * x, normalized_axes(attrs, x.rank()));
  const Expr y = x / sqrt(square + attrs.epsilon) * cast(op.operand("scale"), wide);
  op.define("y", cast(y, op.result_type("y").dtype));
}

void gradient(const Attrs& attrs, Gradient& op) {
  const DType x_dtype = op.operand_type("x").dtype, dtype = op.operand_type("scale").dtype;
  const Var x = cast_to(op.operand("x"), dtype);
  const Axes axes = normalized_axes(attrs, op.build().rank(x));
  const Var root = op.build().call("sqrt", {mean_over(x * x, axes) + attrs.epsilon});
  const Var y = x / root, dy = op.upstream("y");
  const Var scaled = dy * op.operand("scale");
  op.add("x", cast_to((scaled - y * mean_over(scaled * y, axes)) / root, x_dtype));
  op.add("scale", dy * y);
}

}  // namespace

TENON_DEFINE_OP(rms_norm) = OpSpec<Attrs>{
    .name = "rms_norm",
    .summary = "x divided by its root mean square over the axes from `axis` on, times scale",
    .operands = {"x", "scale"},
    .results = {"y"},
    .attrs = {{"axis", &Attrs::axis}, {"epsilon", &Attrs::epsilon}, {"stash", &Attrs::stash}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = logical_order(),
};

}  // namespace tenon
