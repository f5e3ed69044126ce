#include "expr/lowering.h"
#include "ir/assumptions.h"
#include "ops/definition/op_spec.h"
#include "ops/families/normalization.h"

namespace tenon::inline ops::group_norm_op {
namespace {

struct Attrs {
  std::int64_t groups = 1;
  std::int64_t axis = 1;
  double epsilon = 1e-5;
  std::optional<DType> stash;
};

std::size_t channel_axis(const Attrs& attrs, std::size_t rank) {
  return normal_axis("group_norm", attrs.axis, rank);
}

// Splits the channel axis into groups and channels per group.
Dims grouped_dims(const Attrs& attrs, Dims dims) {
  const std::size_t axis = channel_axis(attrs, dims.size());
  const Dim channels = floor_div(dims[axis], attrs.groups);
  dims[axis] = attrs.groups;
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, channels);
  return dims;
}

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  require_floats(in);
  const TensorType& x = in["x"];
  const std::size_t axis = channel_axis(attrs, x.rank());
  if (attrs.groups < 1 || !assume_multiple(x.dims[axis], attrs.groups)) {
    throw Error("group_norm: the channels do not fall into equal groups")
        .expected("a multiple of groups = ", attrs.groups)
        .got(x.dims[axis], " channels in ", x);
  }
  require_vector(in, "scale", axis);
  require_vector(in, "bias", axis);
  return x;
}

void lower(const Attrs& attrs, Lowering& op) {
  const DType wide = statistics_dtype(attrs.stash, op.operand_type("x").dtype);
  const Expr x = cast(op.operand("x"), wide);
  const std::size_t axis = channel_axis(attrs, x.rank());
  const Expr grouped = reshape(x, grouped_dims(attrs, x.dims()));
  const Axes axes = axes_inside(axis, grouped.rank());
  const Expr value = reshape(standardize(grouped, axes, attrs.epsilon).value, x.dims());
  const auto vector = [&](const char* name) {
    return along_axis(cast(op.operand(name), wide), axis, x.rank());
  };
  op.define("y", cast(value * vector("scale") + vector("bias"), op.result_type("y").dtype));
}

void gradient(const Attrs& attrs, Gradient& op) {
  const Dims dims = op.operand_type("x").dims;
  const Dims grouped = grouped_dims(attrs, dims);
  const std::size_t axis = channel_axis(attrs, dims.size());
  const Axes axes = axes_inside(axis, grouped.size());
  const StandardizedVar y = standardize(reshape_to(op.operand("x"), grouped), axes, attrs.epsilon);
  const Var dy = op.upstream("y");
  const Var scaled = dy * along_axis(op.operand("scale"), axis, dims.size());
  op.add("x", reshape_to(standardize_gradient(y, axes, reshape_to(scaled, grouped)), dims));
  op.add("scale", sum_along_axis(dy * reshape_to(y.value, dims), axis));
  op.add("bias", sum_along_axis(dy, axis));
}

}  // namespace

TENON_DEFINE_OP(group_norm) = OpSpec<Attrs>{
    .name = "group_norm",
    .summary =
        "mean 0 and variance 1 for each sample and group of channels, then scaled and "
        "shifted by channel",
    .operands = {"x", "scale", "bias"},
    .results = {"y"},
    .attrs = {{"groups", &Attrs::groups, required},
              {"axis", &Attrs::axis},
              {"epsilon", &Attrs::epsilon},
              {"stash", &Attrs::stash}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = follows_axis("axis"),
    .examples = {"x: F n 4 h w; scale: F 4; bias: F 4; groups = 2"},
};

}  // namespace tenon::inline ops::group_norm_op
