#include "ops/lowering.h"
#include "ops/normalization.h"
#include "ops/op_spec.h"

namespace tenon {
namespace {

struct Attrs {
  std::int64_t axis = 1;
  double epsilon = 1e-5;
  double momentum = 0.9;
};

Axes batch_axes(const Attrs& attrs, std::size_t rank) {
  const std::size_t channel = normal_axis("batch_norm_training", attrs.axis, rank);
  Axes axes = axes_inside(channel, rank);
  if (channel != 0) axes.insert(axes.begin(), 0);
  return axes;
}

ResultTypes infer(const Attrs& attrs, const OperandTypes& in) {
  const std::size_t axis = normal_axis("batch_norm_training", attrs.axis, in["x"].rank());
  for (const char* operand : {"scale", "bias", "mean", "variance"}) {
    require_vector(in, operand, axis);
  }
  return {in["x"], in["mean"], in["variance"]};
}

void lower(const Attrs& attrs, Lowering& op) {
  const DType wide = statistics_dtype({}, op.operand_type("x").dtype);
  const Expr x = cast(op.operand("x"), wide);
  const std::size_t axis = normal_axis("batch_norm_training", attrs.axis, x.rank());
  const Axes axes = batch_axes(attrs, x.rank());
  const Standardized batch = standardize(x, axes, attrs.epsilon);
  const auto vector = [&](const char* name) {
    return along_axis(cast(op.operand(name), wide), axis, x.rank());
  };
  const Expr y = batch.value * vector("scale") + vector("bias");
  op.define("y", cast(y, op.result_type("y").dtype));
  const auto define_running = [&](const char* result, const char* operand, const Expr& current) {
    if (!op.wants(result)) return;
    const Expr before = cast(op.operand(operand), wide);
    const Expr now = drop_axes(current, axes);
    const Expr running = before * attrs.momentum + now * (1 - attrs.momentum);
    op.define(result, cast(running, op.result_type(result).dtype));
  };
  define_running("running_mean", "mean", batch.mean);
  define_running("running_variance", "variance", batch.variance);
}

void gradient(const Attrs& attrs, Gradient& op) {
  const TensorType type = op.operand_type("x");
  const std::size_t axis = normal_axis("batch_norm_training", attrs.axis, type.rank());
  const Axes axes = batch_axes(attrs, type.rank());
  const StandardizedVar batch = standardize(op.operand("x"), axes, attrs.epsilon);
  const Var dy = op.upstream("y");
  const Var scale = cast_to(op.operand("scale"), type.dtype);
  op.add("x", standardize_gradient(batch, axes, dy * along_axis(scale, axis, type.rank())));
  const auto add_sum = [&](const char* name, Var value) {
    op.add(name, cast_to(sum_along_axis(value, axis), op.operand_type(name).dtype));
  };
  add_sum("scale", dy * batch.value);
  add_sum("bias", dy);
  const auto add_running = [&](const char* result, const char* operand, Var slope) {
    if (!op.has_upstream(result)) return;
    const Var flow = op.upstream(result);
    op.add(operand, flow * attrs.momentum);
    const Var now = along_axis(cast_to(flow, type.dtype) * (1 - attrs.momentum), axis, type.rank());
    op.add("x", share_of_mean(slope.is_valid() ? now * slope : now, op.operand("x"), axes));
  };
  add_running("running_mean", "mean", Var());
  add_running("running_variance", "variance", batch.value / batch.inverse_deviation * 2.0);
}

}  // namespace

TENON_DEFINE_OP(batch_norm_training) = OpSpec<Attrs>{
    .name = "batch_norm_training",
    .summary =
        "batch_norm with the batch's own statistics, which also update the running ones: "
        "before * momentum + now * (1 - momentum)",
    .operands = {"x", "scale", "bias", "mean", "variance"},
    .results = {"y", optional("running_mean"), optional("running_variance")},
    .attrs = {{"axis", &Attrs::axis}, {"epsilon", &Attrs::epsilon}, {"momentum", &Attrs::momentum}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = follows_axis("axis"),
};

}  // namespace tenon
