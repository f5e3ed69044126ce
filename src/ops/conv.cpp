#include "ops/definition/op_spec.h"
#include "ops/definition/var_ops.h"
#include "ops/families/convolution.h"

namespace tenon::inline ops::conv_op {
namespace {

struct Attrs : ConvolutionAttrs {
  /// Dtype of the products and the result; narrow integers are widened to it.
  std::optional<DType> out_dtype;
  /// Padding value; for quantized bytes, the zero point.
  std::int64_t pad_value = 0;
};

Convolution geometry(const Attrs& attrs, const TensorType& x, const TensorType& w) {
  Convolution conv{AxisMap("conv", x, "NC"),
                   AxisMap("conv", w, "OI"),
                   AxisMap("conv", x, "NC"),
                   {},
                   {},
                   {},
                   {},
                   attrs.groups};
  if (conv.x.rank() != conv.w.rank() || conv.x.rank() < 3) {
    throw Error("conv: image and weights differ in rank")
        .expected("x: [N, C, spatial…], w: [O, C/groups, spatial…]")
        .got("x: ", x, ", w: ", w);
  }
  conv.x_dims = conv.x.logical_dims(x.dims);
  conv.w_dims = conv.w.logical_dims(w.dims);
  require_groups("conv", attrs.groups, conv.w_dims[0]);
  require_extent("conv", "channels of the image are not those of the weights times groups",
                 conv.x_dims[1], conv.w_dims[1] * Dim(attrs.groups));
  conv.windows =
      resolve_windows("conv", attrs, spatial_dims(conv.x_dims), spatial_dims(conv.w_dims));
  conv.y_dims = {conv.x_dims[0], conv.w_dims[0]};
  for (const Window& window : conv.windows) conv.y_dims.push_back(window.count);
  conv.y = AxisMap("conv", chosen_layout(attrs.out_layout, x.layout), conv.y_dims.size(), "NC");
  return conv;
}

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType &x = in["x"], &w = in["w"];
  if (!attrs.out_dtype) require_same_dtype("conv", x, w);
  if (attrs.pad_value != 0 &&
      (!is_integer(x.dtype) || attrs.pad_value < lowest_integer(x.dtype) ||
       attrs.pad_value > static_cast<std::int64_t>(highest_integer(x.dtype)))) {
    throw Error("conv: attribute 'pad_value' is no element of the image")
        .expected("0, or an integer that the image's element type holds")
        .got(attrs.pad_value, ", x: ", x);
  }
  const Convolution conv = geometry(attrs, x, w);
  require_bias("conv", in, conv.y_dims[1]);
  return {attrs.out_dtype.value_or(x.dtype), conv.y.physical_dims("conv", conv.y_dims),
          chosen_layout(attrs.out_layout, x.layout)};
}

void lower(const Attrs& attrs, Lowering& op) {
  const Convolution conv = geometry(attrs, op.operand_type("x"), op.operand_type("w"));
  const Expr y = convolve(conv, op.operand("x"), op.operand("w"), op.result_type("y").dtype,
                          static_cast<double>(attrs.pad_value));
  op.define("y", add_bias(op, conv.y, y));
}

void gradient(const Attrs& attrs, Gradient& op) {
  const TensorType &x = op.operand_type("x"), &w = op.operand_type("w");
  const Convolution conv = geometry(attrs, x, w);
  const Var dy = cast_to(op.upstream("y"), x.dtype);
  const Layout& given = op.result_type("y").layout;
  op.add("x", call_op(op.build(), "conv_transpose", {dy, op.operand("w")},
                      transposed_attributes(conv, layout_to_ask(x, given, "NC"))));
  Attributes to_w = convolution_attributes(conv, w.layout);
  to_w.set("kernel_shape", spatial_dims(conv.w_dims));
  op.add("w", call_op(op.build(), "conv_weight_gradient", {op.operand("x"), dy}, std::move(to_w)));
  add_bias_gradient(op, conv.y, dy);
}

}  // namespace

TENON_DEFINE_OP(conv) = OpSpec<Attrs>{
    .name = "conv",
    .summary = "sums of windows of the image x times weights w, plus the bias b",
    .operands = {"x", "w", optional("b")},
    .results = {"y"},
    .attrs = with_convolution_fields<Attrs>({{"out_dtype", &Attrs::out_dtype},
                                             {"pad_value", &Attrs::pad_value}}),
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = prefers({"NHWC", "NCHW8c", "NCHW"}),
    .precision = Precision::Integer,
    .examples = {"x: F n c h w; w: F o c 2 2; b: F o", "x: F n c h w; w: F o c 1 1",
                 "x: F n c h w; w: F c 1 3 3; b: F c; groups = c; pads = 1 1 1 1",
                 "x: F n c l; w: F o c 3; pads = 1 1",
                 "x: F n c 4 5; w: F o c 3 3; b: F o; strides = 2 1; pads = _ _ _ _"},
};

}  // namespace tenon::inline ops::conv_op
