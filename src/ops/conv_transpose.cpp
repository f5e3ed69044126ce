#include "ir/assumptions.h"
#include "ops/definition/op_spec.h"
#include "ops/families/convolution.h"

#include <algorithm>

namespace tenon::inline ops::conv_transpose_op {
namespace {

struct Attrs : ConvolutionAttrs {
  std::vector<std::int64_t> output_padding;
  /// Spatial extents of the result. If given, pads are derived from them.
  Dims output_shape;
};

// Resolves extent and pads of one axis; `count` is the operand's extent.
void resolve(const Attrs& attrs, std::size_t axis, Window& window) {
  const Dim stride = window.stride;
  const bool is_same = attrs.auto_pad == AutoPad::SameUpper || attrs.auto_pad == AutoPad::SameLower;
  Dim whole = stride * (window.count - Dim(1)) + window.reach();
  if (!attrs.output_padding.empty()) whole = whole + Dim(attrs.output_padding[axis]);
  if (!attrs.output_shape.empty()) {
    window.extent = attrs.output_shape[axis];
  } else if (is_same) {
    window.extent = window.count * stride;
  } else {
    window.extent = whole - window.begin - window.end;
  }
  const bool has_pads = attrs.auto_pad == AutoPad::None && !attrs.pads.empty();
  if (is_same || (!attrs.output_shape.empty() && !has_pads)) {
    split_padding(window, max(whole - window.extent, 0), attrs.auto_pad);
  }
  if (!assume_at_most(0, window.extent)) {
    throw Error("conv_transpose: the pads leave nothing of the result")
        .expected("pads of at most ", whole)
        .got(window.begin, " and ", window.end);
  }
}

// The operand x and the result are y and x of the transposed convolution.
Convolution geometry(const Attrs& attrs, const TensorType& x, const TensorType& w) {
  const std::string_view op = "conv_transpose";
  Convolution conv{AxisMap(op, x, "NC"), AxisMap(op, w, "OI"), AxisMap(op, x, "NC"), {}, {}, {}, {},
                   attrs.groups};
  if (conv.y.rank() != conv.w.rank() || conv.y.rank() < 3) {
    throw Error("conv_transpose: image and weights differ in rank")
        .expected("x: [N, C, spatial…], w: [C, O/groups, spatial…]")
        .got("x: ", x, ", w: ", w);
  }
  conv.y_dims = conv.y.logical_dims(x.dims);
  conv.w_dims = conv.w.logical_dims(w.dims);
  require_groups(op, attrs.groups, conv.w_dims[0]);
  require_extent(op, "channels of the image are not those of the weights", conv.y_dims[1],
                 conv.w_dims[0]);
  conv.windows = plain_windows(op, attrs, spatial_dims(conv.w_dims));
  for (const std::size_t given : {attrs.output_padding.size(), attrs.output_shape.size()}) {
    if (given == 0 || given == conv.windows.size()) continue;
    throw Error("conv_transpose: 'output_padding' or 'output_shape' has the wrong length")
        .expected(conv.windows.size(), " entries for the spatial axes")
        .got(given);
  }
  if (std::ranges::any_of(attrs.output_padding, [](std::int64_t count) { return count < 0; })) {
    throw Error("conv_transpose: an output padding is negative")
        .got(Dims(attrs.output_padding.begin(), attrs.output_padding.end()));
  }
  conv.x_dims = {conv.y_dims[0], conv.w_dims[1] * Dim(attrs.groups)};
  for (std::size_t axis = 0; axis < conv.windows.size(); ++axis) {
    Window& window = conv.windows[axis];
    window.count = conv.y_dims[2 + axis];
    resolve(attrs, axis, window);
    conv.x_dims.push_back(window.extent);
  }
  conv.x = AxisMap(op, chosen_layout(attrs.out_layout, x.layout), conv.x_dims.size(), "NC");
  return conv;
}

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType& x = in["x"];
  require_same_dtype("conv_transpose", x, in["w"]);
  const Convolution conv = geometry(attrs, x, in["w"]);
  require_bias("conv_transpose", in, conv.x_dims[1]);
  return {x.dtype, conv.x.physical_dims("conv_transpose", conv.x_dims),
          chosen_layout(attrs.out_layout, x.layout)};
}

void lower(const Attrs& attrs, Lowering& op) {
  const Convolution conv = geometry(attrs, op.operand_type("x"), op.operand_type("w"));
  const Expr y = convolve_transposed(conv, op.operand("x"), op.operand("w"));
  op.define("y", add_bias(op, conv.x, y));
}

void gradient(const Attrs& attrs, Gradient& op) {
  const TensorType &x = op.operand_type("x"), &w = op.operand_type("w");
  Convolution conv = geometry(attrs, x, w);
  const Var dy = op.upstream("y");
  add_bias_gradient(op, conv.x, dy);
  conv.windows = exact_windows(std::move(conv.windows));
  const Layout asked = layout_to_ask(x, op.result_type("y").layout, "NC");
  op.add("x",
         call_op(op.build(), "conv", {dy, op.operand("w")}, convolution_attributes(conv, asked)));
  Attributes to_w = convolution_attributes(conv, w.layout);
  to_w.set("kernel_shape", spatial_dims(conv.w_dims));
  op.add("w", call_op(op.build(), "conv_weight_gradient", {dy, op.operand("x")}, std::move(to_w)));
}

}  // namespace

// The weights' axes keep the names of the forward convolution: O is an axis of x, I of the result.
TENON_DEFINE_OP(conv_transpose) = OpSpec<Attrs>{
    .name = "conv_transpose",
    .summary =
        "every element of x times weights w, added up where the windows of a convolution lie",
    .operands = {"x", "w", optional("b")},
    .results = {"y"},
    .attrs = with_convolution_fields<Attrs>({{"output_padding", &Attrs::output_padding},
                                             {"output_shape", &Attrs::output_shape}}),
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = prefers({"NHWC", "NCHW8c", "NCHW"}),
    .precision = Precision::Integer,
    .examples = {"x: F n c h w; w: F c o 2 2; b: F o"},
};

}  // namespace tenon::inline ops::conv_transpose_op
