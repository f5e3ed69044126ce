#include "base/error.h"
#include "frontends/onnx/attention_heads.h"
#include "frontends/onnx/byte_contraction.h"
#include "frontends/onnx/window_attrs.h"
#include "ops/definition/var_ops.h"
#include "ops/families/movement.h"

#include <algorithm>

namespace tenon::frontends::onnx {
namespace {

Var transposed_if(NodeImport& node, std::string_view flag, Var matrix) {
  if (node.integer(flag, 0) == 0) return matrix;
  return node.call("transpose", {matrix}, {{"perm", Attr::Integers{1, 0}}});
}

Var scaled_if(Var value, double factor) { return factor == 1 ? value : value * factor; }

void import_gemm(NodeImport& node) {
  const Var a = transposed_if(node, "transA", node.input(0));
  const Var b = transposed_if(node, "transB", node.input(1));
  Var y = scaled_if(node.call("matmul", {a, b}), node.real("alpha", 1));
  const double beta = node.real("beta", 1);
  if (node.has_input(2) && beta != 0) y = y + scaled_if(node.input(2), beta);
  node.output(y);
}

void import_conv(NodeImport& node) {
  node.output(node.call("conv", {node.input(0), node.input(1), node.input_or_none(2)},
                        convolution_attrs(node)));
}

void import_conv_transpose(NodeImport& node) {
  std::vector<Attr> attrs = convolution_attrs(node);
  attrs.emplace_back("output_padding", node.integers("output_padding"));
  Attr::Integers output_shape = node.integers("output_shape");
  if (!output_shape.empty()) {
    // Some exporters also write the batch and the channels.
    const std::optional<std::size_t> rank = node.rank(node.input(0));
    if (rank && output_shape.size() == *rank) {
      output_shape.erase(output_shape.begin(), output_shape.begin() + 2);
    }
    attrs.emplace_back("output_shape", output_shape);
    // The output shape overrides stated pads.
    std::erase_if(attrs, [](const Attr& attr) { return attr.name == "pads"; });
  }
  node.output(
      node.call("conv_transpose", {node.input(0), node.input(1), node.input_or_none(2)}, attrs));
}

void import_deform_conv(NodeImport& node) {
  std::vector<Attr> attrs = convolution_attrs(node);
  attrs.emplace_back("offset_groups", node.integer("offset_group", 1));
  node.output(node.call(
      "deform_conv",
      {node.input(0), node.input(1), node.input(2), node.input_or_none(3), node.input_or_none(4)},
      attrs));
}

Var cast(NodeImport& node, Var value, std::string_view dtype) {
  return node.call("cast", {value}, {{"to", std::string(dtype)}});
}

// Reshapes a list of numbers to run along `axis` of a tensor with `rank` axes.
Var along_axis(NodeImport& node, Var numbers, std::size_t axis, std::optional<std::size_t> rank) {
  if (node.rank(numbers).value_or(0) != 1 || node.build.shape(numbers).front() == 1) return numbers;
  if (!rank) node.unsupported("it needs the rank of its input before the model runs");
  if (axis >= *rank) {
    throw Error("zero points run along an axis that their tensor does not have")
        .expected("a rank of at least ", axis + 1)
        .got(*rank);
  }
  Attr::Integers shape(*rank, 1);
  shape[axis] = -1;
  return node.call("reshape", {numbers}, {{"shape", shape}});
}

bool is_zero_or_missing(const NodeImport& node, std::size_t input) {
  if (!node.has_input(input)) return true;
  const std::optional<Tensor> value = node.constant_input(input);
  if (!value) return false;
  const std::vector<double> numbers = value->reals();
  return std::ranges::all_of(numbers, [](double number) { return number == 0; });
}

/// A quantized operand of a contraction: its inputs, and the axis of its channels.
struct Quantized {
  std::size_t value;
  std::size_t zero_point;
  std::size_t axis;
};

bool has_no_zero_point(const NodeImport& node, const Quantized& operand) {
  return is_zero_or_missing(node, operand.zero_point);
}

// Returns the operand minus its zero point, in a `dtype` that cannot overflow.
Var centred(NodeImport& node, const Quantized& operand, std::string_view dtype) {
  const Var value = node.input(operand.value);
  const Var wide = cast(node, value, dtype);
  if (has_no_zero_point(node, operand)) return wide;
  const Var zero = along_axis(node, node.input(operand.zero_point), operand.axis, node.rank(value));
  return wide - cast(node, zero, dtype);
}

Var contract(NodeImport& node, std::string_view op, const Quantized& a, const Quantized& b,
             Var bias, std::vector<Attr> attrs, std::string_view dtype) {
  attrs.emplace_back("out_dtype", std::string(dtype));
  std::vector<Var> operands;
  if (has_no_zero_point(node, a) && has_no_zero_point(node, b)) {
    operands = {node.input(a.value), node.input(b.value)};
  } else {
    operands = {centred(node, a, dtype), centred(node, b, dtype)};
  }
  if (bias.is_valid()) operands.push_back(bias);
  return node.call(op, operands, attrs);
}

void output_requantized(NodeImport& node, Var sums, Var scale, std::size_t zero_point,
                        std::int64_t axis) {
  const Var zero = node.input(zero_point);
  if (is_integer(node.dtype(zero))) {
    node.output(node.call("requantize", {sums, scale, zero}, {{"axis", axis}}));
  } else {
    node.output(cast(node, sums * scale + cast(node, zero, "f32"), to_string(node.dtype(zero))));
  }
}

// A list of zero points of the left matrix runs along its rows, the last axis but one.
Quantized left_matrix(const NodeImport& node, std::size_t value, std::size_t zero_point) {
  const std::size_t rank = node.rank(node.input(value)).value_or(2);
  return {value, zero_point, rank < 2 ? 0 : rank - 2};
}
Quantized right_matrix(const NodeImport& node, std::size_t value, std::size_t zero_point) {
  return {value, zero_point, node.rank(node.input(value)).value_or(2) - 1};
}

void import_matmul_integer(NodeImport& node) {
  if (const std::optional<Var> y = integer_matmul(node)) return node.output(*y);
  node.output(contract(node, "matmul", left_matrix(node, 0, 2), right_matrix(node, 1, 3), Var(), {},
                       "i32"));
}

void import_conv_integer(NodeImport& node) {
  if (const std::optional<Var> y = integer_conv(node)) return node.output(*y);
  node.output(contract(node, "conv", {0, 2, 1}, {1, 3, 0}, Var(), convolution_attrs(node), "i32"));
}

void import_qlinear_matmul(NodeImport& node) {
  const Quantized a = left_matrix(node, 0, 2), b = right_matrix(node, 3, 5);
  const std::string_view dtype = is_float(node.dtype(node.input(0))) ? "f32" : "i32";
  const Var sums = contract(node, "matmul", a, b, Var(), {}, dtype);
  const Var row_scale = along_axis(node, cast(node, node.input(1), "f32"), 0, 2);
  const Var scale = row_scale * cast(node, node.input(4), "f32") / cast(node, node.input(6), "f32");
  output_requantized(node, sums, scale, 7, -1);
}

void import_qlinear_conv(NodeImport& node) {
  const Quantized x{0, 2, 1}, w{3, 5, 0};
  const Var sums =
      contract(node, "conv", x, w, node.input_or_none(8), convolution_attrs(node, 3), "i32");
  const Var scale = cast(node, node.input(1), "f32") * cast(node, node.input(4), "f32") /
                    cast(node, node.input(6), "f32");
  output_requantized(node, sums, scale, 7, 1);
}

// Depthwise convolution along the last axis, for weights whose shape is known at run time:
// gathers the windows [batch, channels, length, kernel] and sums their products.
Var depthwise(NodeImport& node, Var padded, Var weight, Var bias) {
  const DType dtype = node.dtype(padded), wide = dtype == DType::F64 ? dtype : DType::F32;
  const Var taps = positions_along(node, weight, 2);
  const Var starts = node.call("unsqueeze", {positions_along(node, node.input(0), 2)},
                               {{"axes", Attr::Integers{1}}});
  const Var windows = node.call("gather", {padded, starts + taps}, {{"axis", 2}});
  const Var flat = node.call("squeeze", {weight}, {{"axes", Attr::Integers{1}}});
  const Var factors =
      reshape_to(cast_to(flat, wide), {node.dims(padded)[1], 1, node.dims(weight)[2]});
  Var y = node.call("reduce_sum", {cast_to(windows, wide) * factors},
                    {{"axes", Attr::Integers{-1}}, {"keep_axes", false}});
  if (bias.is_valid()) y = y + reshape_to(cast_to(bias, wide), {node.dims(padded)[1], 1});
  return cast_to(y, dtype);
}

void import_causal_conv(NodeImport& node) {
  const Var x = node.input(0), weight = node.input(1), bias = node.input_or_none(2);
  const Dims dims = node.dims(x), weights = node.dims(weight);
  if (dims.size() != 3 || weights.size() != 3) {
    throw Error("CausalConvWithState: an operand has the wrong rank")
        .expected("x: [batch, channels, length], weight: [channels, 1, kernel]")
        .got(node.type(x), " and ", node.type(weight));
  }
  const Dim kept = weights[2] - 1;
  const Var padded =
      node.has_input(3)
          ? node.call("concat", {reshape_to(node.input(3), {dims[0], dims[1], kept}), x},
                      {{"axis", 2}})
          : call_with("pad", {x}, {{"pads", Dims{0, 0, kept, 0, 0, 0}}});
  const bool has_windows = weights[0].is_constant() && weights[2].is_constant() &&
                           weights[2] != Dim(0) && dims[2] != Dim(0);
  Var y = has_windows
              ? node.call("conv", {padded, weight, bias}, {{"groups", weights[0].constant()}})
              : depthwise(node, padded, weight, bias);
  const std::string activation = node.text("activation", "none");
  if (activation == "silu" || activation == "swish") y = node.call("swish", {y});
  node.output(0, y);
  if (!node.wants_output(1)) return;
  const Dim length = node.dims(padded)[2];
  node.output(
      1, call_with("slice", {padded},
                   {{"starts", Dims{length - kept}}, {"ends", Dims{length}}, {"axes", Dims{2}}}));
}

constexpr Handler contraction_table[] = {
    {"CausalConvWithState", import_causal_conv}, {"Conv", import_conv},
    {"ConvInteger", import_conv_integer},        {"ConvTranspose", import_conv_transpose},
    {"DeformConv", import_deform_conv},          {"Gemm", import_gemm},
    {"MatMulInteger", import_matmul_integer},    {"QLinearConv", import_qlinear_conv},
    {"QLinearMatMul", import_qlinear_matmul},
};

}  // namespace

std::span<const Handler> contraction_handlers() { return contraction_table; }

}  // namespace tenon::frontends::onnx
