#include "ir/assumptions.h"
#include "ops/definition/derived_gradient.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/operand_shapes.h"
#include "ops/families/convolution.h"

namespace tenon::inline ops::deform_conv_op {
namespace {

struct Attrs : ConvolutionAttrs {
  std::int64_t offset_groups = 1;
};

struct Geometry {
  Dims x, w, y;
  std::vector<Window> windows;
};

Geometry geometry(const Attrs& attrs, const TensorType& x, const TensorType& w) {
  if (x.rank() < 3 || x.rank() != w.rank()) {
    throw Error("deform_conv: image and weights differ in rank")
        .expected("x: [N, C, spatial…], w: [O, C/groups, spatial…]")
        .got("x: ", x, ", w: ", w);
  }
  require_groups("deform_conv", attrs.groups, w.dims[0]);
  require_extent("deform_conv", "channels of the image are not those of the weights times groups",
                 x.dims[1], w.dims[1] * Dim(attrs.groups));
  Geometry all{x.dims, w.dims, {x.dims[0], w.dims[0]}, {}};
  all.windows = resolve_windows("deform_conv", attrs, spatial_dims(x.dims), spatial_dims(w.dims));
  for (const Window& window : all.windows) all.y.push_back(window.count);
  return all;
}

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType &x = in["x"], &offset = in["offset"];
  require_same_dtype("deform_conv", x, in["w"]);
  // Integer images are refused: interpolation needs values between integers, and rounding to one
  // would depend on the last bit of a sum.
  if (!is_float(x.dtype)) throw Error("deform_conv: the image must be of floats").got(x);
  const Geometry all = geometry(attrs, x, in["w"]);
  require_bias("deform_conv", in, all.y[1]);
  require_rank("deform_conv", "offset", offset, x.rank());
  if (attrs.offset_groups < 1 || !assume_multiple(x.dims[1], attrs.offset_groups)) {
    throw Error("deform_conv: the channels do not divide into 'offset_groups'")
        .expected("a divisor of ", x.dims[1])
        .got(attrs.offset_groups);
  }
  Dim elements = attrs.offset_groups;
  for (const Window& window : all.windows) elements = elements * window.kernel;
  const Dim coordinates = elements * static_cast<std::int64_t>(all.windows.size());
  require_extent("deform_conv", "'offset' has not one channel for each coordinate of the window",
                 offset.dims[1], coordinates);
  Dims places = all.y;
  places[1] = coordinates;
  require_dims("deform_conv", "offset", offset, places);
  places[1] = elements;
  if (in.has("mask")) require_dims("deform_conv", "mask", in["mask"], places);
  return {x.dtype, all.y, {}};
}

// Positions need more precision than f16 and bf16 have.
DType position_dtype(DType dtype) { return dtype == DType::F64 ? DType::F64 : DType::F32; }

// Multilinear interpolation of x at `position` from the surrounding corners.
Expr interpolated(const Expr& x, const std::vector<Expr>& leading,
                  const std::vector<Expr>& position) {
  const DType dtype = position[0].dtype();
  Expr sum;
  for (std::size_t corner = 0; corner < std::size_t{1} << position.size(); ++corner) {
    std::vector<Expr> at = leading;
    Expr weight = literal(dtype, 1);
    for (std::size_t axis = 0; axis < position.size(); ++axis) {
      const Expr below = floor(position[axis]);
      const Expr fraction = position[axis] - below;
      const bool is_above = (corner >> axis & 1) != 0;
      weight = weight * (is_above ? fraction : 1.0 - fraction);
      const Expr index = cast(below, DType::I64);
      at.push_back(is_above ? index + Dim(1) : index);
    }
    const Expr part = weight * cast(x.at_or(std::move(at), 0), dtype);
    sum = corner == 0 ? part : sum + part;
  }
  return sum;
}

// Samples of x under the windows, one per channel, position and window element.
Expr sampled(const Attrs& attrs, const Geometry& all, const Lowering& op) {
  const std::size_t rank = all.windows.size();
  Dims kernel, count, loops{all.x[0], all.x[1]};
  for (const Window& window : all.windows) {
    kernel.push_back(window.kernel);
    count.push_back(window.count);
  }
  loops.insert(loops.end(), count.begin(), count.end());
  loops.insert(loops.end(), kernel.begin(), kernel.end());
  const std::vector<Expr> index = Space(loops).indices();
  const Expr offset_group = attrs.offset_groups == 1
                                ? integer(0)
                                : floor_div(index[1], floor_div(all.x[1], attrs.offset_groups));
  const auto places = index.begin() + 2;
  const auto signed_rank = static_cast<std::ptrdiff_t>(rank);
  std::vector<Expr> at{index[0], offset_group};
  at.insert(at.end(), places + signed_rank, index.end());

  Dims split{all.x[0], Dim(attrs.offset_groups)};
  split.insert(split.end(), kernel.begin(), kernel.end());
  Dims offset_dims = split;
  offset_dims.push_back(static_cast<std::int64_t>(rank));
  offset_dims.insert(offset_dims.end(), count.begin(), count.end());
  split.insert(split.end(), count.begin(), count.end());

  const DType dtype = position_dtype(op.operand_type("x").dtype);
  const Expr offset = reshape(op.operand("offset"), std::move(offset_dims));
  std::vector<Expr> position;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    std::vector<Expr> offset_at = at;
    offset_at.push_back(integer(static_cast<std::int64_t>(axis)));
    offset_at.insert(offset_at.end(), places, places + signed_rank);
    const Expr regular = input_position(all.windows[axis], index[2 + axis], index[2 + rank + axis]);
    position.push_back(cast(regular, dtype) + cast(offset.at(std::move(offset_at)), dtype));
  }
  const Expr value = interpolated(op.operand("x"), {index[0], index[1]}, position);
  if (!op.has("mask")) return value;
  at.insert(at.end(), places, places + signed_rank);
  return value * cast(reshape(op.operand("mask"), std::move(split)).at(std::move(at)), dtype);
}

void lower(const Attrs& attrs, Lowering& op) {
  const Geometry all = geometry(attrs, op.operand_type("x"), op.operand_type("w"));
  const std::size_t rank = all.windows.size();
  const Expr samples = sampled(attrs, all, op);
  Dims loops = all.y;
  Axes summed;
  for (std::size_t k = 1; k < all.w.size(); ++k) {
    summed.push_back(static_cast<std::int64_t>(loops.size()));
    loops.push_back(all.w[k]);
  }
  const std::vector<Expr> index = Space(loops).indices();
  const Expr& channel = index[2 + rank];
  const Expr group = floor_div(index[1], floor_div(all.w[0], attrs.groups));
  std::vector<Expr> at{index[0], attrs.groups == 1 ? channel : group * all.w[1] + channel};
  std::vector<Expr> weight_at{index[1], channel};
  for (std::size_t axis = 0; axis < rank; ++axis) at.push_back(index[2 + axis]);
  for (std::size_t axis = 0; axis < rank; ++axis) {
    at.push_back(index[3 + rank + axis]);
    weight_at.push_back(index[3 + rank + axis]);
  }
  const Expr weight = cast(op.operand("w").at(std::move(weight_at)), samples.dtype());
  const Expr sums = sum_out(samples.at(std::move(at)) * weight, summed);
  const AxisMap map("deform_conv", Layout(), all.y.size(), "NC");
  op.define("y", cast(add_bias(op, map, sums), op.result_type("y").dtype));
}

}  // namespace

TENON_DEFINE_OP(deform_conv) = OpSpec<Attrs>{
    .name = "deform_conv",
    .summary = "convolution that reads x beside the window's positions, by `offset`, times `mask`",
    .operands = {"x", "w", "offset", optional("b"), optional("mask")},
    .results = {"y"},
    .attrs = with_convolution_fields<Attrs>({{"offset_groups", &Attrs::offset_groups}}),
    .infer = infer,
    .lower = lower,
    .gradient = derived_gradient<Attrs>,
    .layout = logical_order(),
    .examples = {"x: F n c 4 4; w: F o c 2 2; offset: F n 8 3 3"},
};

}  // namespace tenon::inline ops::deform_conv_op
