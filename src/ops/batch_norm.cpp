#include "expr/lowering.h"
#include "ops/definition/op_spec.h"
#include "ops/families/normalization.h"

namespace tenon::inline ops::batch_norm_op {
namespace {

struct Attrs {
  std::int64_t axis = 1;
  double epsilon = 1e-5;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  require_floats(in);
  const std::size_t axis = normal_axis("batch_norm", attrs.axis, in["x"].rank());
  for (const char* operand : {"scale", "bias", "mean", "variance"}) {
    require_vector(in, operand, axis);
  }
  return in["x"];
}

void lower(const Attrs& attrs, Lowering& op) {
  const DType wide = statistics_dtype({}, op.operand_type("x").dtype);
  const Expr x = cast(op.operand("x"), wide);
  const std::size_t axis = normal_axis("batch_norm", attrs.axis, x.rank());
  const auto vector = [&](const char* name) {
    return along_axis(cast(op.operand(name), wide), axis, x.rank());
  };
  const Expr factor = vector("scale") / sqrt(vector("variance") + attrs.epsilon);
  const Expr y = (x - vector("mean")) * factor + vector("bias");
  op.define("y", cast(y, op.result_type("y").dtype));
}

void gradient(const Attrs& attrs, Gradient& op) {
  const DType dtype = op.operand_type("x").dtype;
  const std::size_t rank = op.operand_type("x").rank();
  const std::size_t axis = normal_axis("batch_norm", attrs.axis, rank);
  const auto vector = [&](const char* name) { return cast_to(op.operand(name), dtype); };
  const auto add_sum = [&](const char* name, Var value) {
    op.add(name, cast_to(sum_along_axis(value, axis), op.operand_type(name).dtype));
  };
  const Var dy = op.upstream("y");
  const Var deviation = op.build().call("sqrt", {vector("variance") + attrs.epsilon});
  const Var centred = op.operand("x") - along_axis(vector("mean"), axis, rank);
  const Var dx = dy * along_axis(vector("scale") / deviation, axis, rank);
  op.add("x", dx);
  add_sum("bias", dy);
  add_sum("scale", dy * centred / along_axis(deviation, axis, rank));
  add_sum("mean", -dx);
  add_sum("variance", dx * centred / along_axis(deviation * deviation, axis, rank) * -0.5);
}

}  // namespace

TENON_DEFINE_OP(batch_norm) = OpSpec<Attrs>{
    .name = "batch_norm",
    .summary = "(x - mean) / sqrt(variance + epsilon) * scale + bias along the channel `axis`",
    .operands = {"x", "scale", "bias", "mean", "variance"},
    .results = {"y"},
    .attrs = {{"axis", &Attrs::axis}, {"epsilon", &Attrs::epsilon}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = follows_axis("axis"),
    .examples = {"x: F n c h w; scale: F c; bias: F c; mean: F c; variance: F c",
                 "x: F n c; scale: F c; bias: F c; mean: F c; variance: F c"},
};

}  // namespace tenon::inline ops::batch_norm_op
