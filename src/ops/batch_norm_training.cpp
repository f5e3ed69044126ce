#include "expr/lowering.h"
#include "ops/definition/op_spec.h"
#include "ops/families/normalization.h"

namespace tenon::inline ops::batch_norm_training_op {
namespace {

constexpr std::size_t kResults = 5;

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
  require_floats(in);
  const std::size_t axis = normal_axis("batch_norm_training", attrs.axis, in["x"].rank());
  for (const char* operand : {"scale", "bias", "mean", "variance"}) {
    require_vector(in, operand, axis);
  }
  TensorType statistic = in["mean"];
  statistic.dtype = statistics_dtype({}, in["x"].dtype);
  return {in["x"], in["mean"], in["variance"], statistic, statistic};
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
  if (op.wants("batch_mean")) op.define("batch_mean", drop_axes(batch.mean, axes));
  if (op.wants("inverse_deviation")) {
    op.define("inverse_deviation", drop_axes(batch.inverse_deviation, axes));
  }
}

// Normalizes x to mean 0 and variance 1, with the saved statistics if the node has them.
StandardizedVar standardized(const Attrs& attrs, Gradient& op, std::size_t axis, const Axes& axes) {
  const Var x = op.operand("x");
  const auto is_given = [&](const char* name) { return ValueId(op.result(name).id()).is_valid(); };
  if (op.result_count() < kResults || !is_given("batch_mean") || !is_given("inverse_deviation")) {
    return standardize(x, axes, attrs.epsilon);
  }
  const TensorType type = op.operand_type("x");
  const auto statistic = [&](const char* name) {
    return along_axis(cast_to(op.result(name), type.dtype), axis, type.rank());
  };
  StandardizedVar batch;
  batch.inverse_deviation = statistic("inverse_deviation");
  batch.value = (x - statistic("batch_mean")) * batch.inverse_deviation;
  return batch;
}

// Two reductions over the batch suffice: the sum of dy is the bias gradient, the sum of dy times
// the standardized x is the scale gradient. dx is dy minus its mean and minus its projection onto
// y.
void gradient(const Attrs& attrs, Gradient& op) {
  const TensorType type = op.operand_type("x");
  const std::size_t axis = normal_axis("batch_norm_training", attrs.axis, type.rank());
  const Axes axes = batch_axes(attrs, type.rank());
  const StandardizedVar batch = standardized(attrs, op, axis, axes);
  const Var x = op.operand("x");
  const auto along = [&](Var vector) { return along_axis(vector, axis, type.rank()); };
  const auto share = [&](Var vector) { return share_of_mean(along(vector), x, axes); };
  if (op.has_upstream("y")) {
    const Var dy = op.upstream("y");
    const Var total = sum_along_axis(dy, axis), part = sum_along_axis(dy * batch.value, axis);
    const Var slope = along(cast_to(op.operand("scale"), type.dtype)) * batch.inverse_deviation;
    op.add("x", slope * (dy - share(total) - batch.value * share(part)));
    op.add("scale", cast_to(part, op.operand_type("scale").dtype));
    op.add("bias", cast_to(total, op.operand_type("bias").dtype));
  }
  const auto add_running = [&](const char* result, const char* operand, Var slope) {
    if (!op.has_upstream(result)) return;
    const Var flow = op.upstream(result);
    op.add(operand, flow * attrs.momentum);
    const Var now = along(cast_to(flow, type.dtype) * (1 - attrs.momentum));
    op.add("x", share_of_mean(slope.is_valid() ? now * slope : now, x, axes));
  };
  add_running("running_mean", "mean", Var());
  add_running("running_variance", "variance", batch.value / batch.inverse_deviation * 2.0);
  if (op.has_upstream("batch_mean")) {
    op.add("x", share(cast_to(op.upstream("batch_mean"), type.dtype)));
  }
  if (op.has_upstream("inverse_deviation")) {
    const Var slope = batch.value * batch.inverse_deviation * batch.inverse_deviation;
    const Var flow = along(cast_to(op.upstream("inverse_deviation"), type.dtype));
    op.add("x", -share_of_mean(flow * slope, x, axes));
  }
}

}  // namespace

TENON_DEFINE_OP(batch_norm_training) = OpSpec<Attrs>{
    .name = "batch_norm_training",
    .summary =
        "batch_norm with the batch's own statistics, which it also gives and which update the "
        "running "
        "ones: before * momentum + now * (1 - momentum)",
    .operands = {"x", "scale", "bias", "mean", "variance"},
    .results = {"y", optional("running_mean"), optional("running_variance"), optional("batch_mean"),
                optional("inverse_deviation")},
    .attrs = {{"axis", &Attrs::axis}, {"epsilon", &Attrs::epsilon}, {"momentum", &Attrs::momentum}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = follows_axis("axis"),
    .examples = {"x: F n c h; scale: F c; bias: F c; mean: F c; variance: F c"},
};

}  // namespace tenon::inline ops::batch_norm_training_op
