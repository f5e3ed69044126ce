#include "ops/definition/op_spec.h"
#include "ops/families/convolution.h"

namespace tenon::inline ops::conv_weight_gradient_op {
namespace {

struct Attrs : ConvolutionAttrs {
  Dims kernel_shape;
};

Convolution geometry(const Attrs& attrs, const TensorType& x, const TensorType& dy) {
  const std::string_view op = "conv_weight_gradient";
  Convolution conv{
      AxisMap(op, x, "NC"), AxisMap(op, x, "NC"), AxisMap(op, dy, "NC"), {}, {}, {}, {},
      attrs.groups};
  conv.x_dims = conv.x.logical_dims(x.dims);
  conv.y_dims = conv.y.logical_dims(dy.dims);
  if (conv.x_dims.size() != conv.y_dims.size() || conv.x_dims.size() < 3) {
    throw Error("conv_weight_gradient: image and gradient differ in rank")
        .expected("x: [N, C, spatial…], dy: [N, O, spatial…]")
        .got("x: ", x, ", dy: ", dy);
  }
  require_groups(op, attrs.groups, conv.y_dims[1]);
  require_extent(op, "batches of the image and of the gradient differ", conv.y_dims[0],
                 conv.x_dims[0]);
  require_extent(op, "the image's channels do not divide into the groups",
                 mod(conv.x_dims[1], attrs.groups), 0);
  conv.w_dims = {conv.y_dims[1], floor_div(conv.x_dims[1], attrs.groups)};
  conv.w_dims.insert(conv.w_dims.end(), attrs.kernel_shape.begin(), attrs.kernel_shape.end());
  conv.windows = resolve_windows(op, attrs, spatial_dims(conv.x_dims), attrs.kernel_shape);
  for (std::size_t axis = 0; axis < conv.windows.size(); ++axis) {
    require_extent(op, "the gradient has not the extent of the convolution's result",
                   conv.y_dims[2 + axis], conv.windows[axis].count);
    conv.windows[axis].count = conv.y_dims[2 + axis];
  }
  conv.w = AxisMap(op, chosen_layout(attrs.out_layout, {}), conv.w_dims.size(), "OI");
  return conv;
}

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  require_same_dtype("conv_weight_gradient", in["x"], in["dy"]);
  const Convolution conv = geometry(attrs, in["x"], in["dy"]);
  return {in["x"].dtype, conv.w.physical_dims("conv_weight_gradient", conv.w_dims),
          chosen_layout(attrs.out_layout, {})};
}

void lower(const Attrs& attrs, Lowering& op) {
  const Convolution conv = geometry(attrs, op.operand_type("x"), op.operand_type("dy"));
  op.define("dw", correlate_for_weights(conv, op.operand("x"), op.operand("dy")));
}

void gradient(const Attrs& attrs, Gradient& op) {
  const TensorType &x = op.operand_type("x"), &dy = op.operand_type("dy");
  Convolution conv = geometry(attrs, x, dy);
  const Var upstream = op.upstream("dw");
  op.add("x", call_op(op.build(), "conv_transpose", {op.operand("dy"), upstream},
                      transposed_attributes(conv, layout_to_ask(x, dy.layout, "NC"))));
  conv.windows = exact_windows(std::move(conv.windows));
  op.add("dy", call_op(op.build(), "conv", {op.operand("x"), upstream},
                       convolution_attributes(conv, layout_to_ask(dy, x.layout, "NC"))));
}

}  // namespace

TENON_DEFINE_OP(conv_weight_gradient) = OpSpec<Attrs>{
    .name = "conv_weight_gradient",
    .summary = "how a loss changes with a convolution's weights, from image x and dy of the result",
    .operands = {"x", "dy"},
    .results = {"dw"},
    .attrs = with_convolution_fields<Attrs>({{"kernel_shape", &Attrs::kernel_shape, required}}),
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = prefers({"NHWC", "NCHW8c", "NCHW"}),
    .examples = {"x: F n c 4 4; dy: F n o 3 3; kernel_shape = 2 2"},
};

}  // namespace tenon::inline ops::conv_weight_gradient_op
