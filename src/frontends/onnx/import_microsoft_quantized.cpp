// com.microsoft's quantized operators, imported as dequantize, operator, quantize (QDQ). The passes
// lower them to integer arithmetic, as in any model with QuantizeLinear and DequantizeLinear.
#include "base/error.h"
#include "frontends/onnx/dynamic_quantize.h"
#include "frontends/onnx/import_node.h"
#include "frontends/onnx/window_attrs.h"
#include "ops/definition/var_ops.h"

namespace tenon::frontends::onnx {
namespace {

// Dequantizes bytes with scale and zero point in three inputs from `first` on.
Var dequantized(NodeImport& node, std::size_t first, std::int64_t axis = 1) {
  return node.call("dequantize_linear",
                   {node.input(first), node.input(first + 1), node.input_or_none(first + 2)},
                   {{"axis", axis}});
}

void output_quantized(NodeImport& node, Var y, std::size_t scale, DType otherwise) {
  const Var zero_point = node.input_or_none(scale + 1);
  std::vector<Attr> attrs;
  if (!zero_point.is_valid()) attrs.emplace_back("to", to_string(otherwise));
  node.output(node.call("quantize_linear", {y, node.input(scale), zero_point}, attrs));
}

DType byte_type(NodeImport& node) { return node.dtype(node.input(0)); }

void import_qlinear_binary(NodeImport& node) {
  const Var a = dequantized(node, 0), b = dequantized(node, 3);
  output_quantized(node, node.op_type() == "QLinearMul" ? a * b : a + b, 6, byte_type(node));
}

void import_qlinear_activation(NodeImport& node) {
  const Var x = dequantized(node, 0);
  const Var y = node.op_type() == "QLinearSigmoid"
                    ? node.call("sigmoid", {x})
                    : node.call("leaky_relu", {x}, {{"alpha", node.real("alpha", 0.01)}});
  output_quantized(node, y, 3, byte_type(node));
}

void import_qlinear_softmax(NodeImport& node) {
  const Var x = dequantized(node, 0);
  const auto rank = static_cast<std::int64_t>(node.dims(x).size());
  const std::int64_t axis = node.integer("axis", -1);
  // Before opset 13 all axes from this one on were flattened.
  if (node.integer("opset", 13) < 13 && axis != -1 && axis != rank - 1)
    node.unsupported("softmax over several axes");
  output_quantized(node, node.call("softmax", {x}, {{"axis", axis}}), 3, byte_type(node));
}

// Transposes channels-last operands for the pool, and back.
Var pooled_by_channel(NodeImport& node, Var x, const auto& pool) {
  if (node.integer("channels_last", 0) == 0) return pool(x);
  const auto rank = static_cast<std::int64_t>(node.dims(x).size());
  Attr::Integers to_front{0, rank - 1}, back{0};
  for (std::int64_t axis = 1; axis + 1 < rank; ++axis) to_front.push_back(axis);
  for (std::int64_t axis = 2; axis < rank; ++axis) back.push_back(axis);
  back.push_back(1);
  return node.call("transpose", {pool(node.call("transpose", {x}, {{"perm", to_front}}))},
                   {{"perm", back}});
}

void import_qlinear_average_pool(NodeImport& node) {
  const auto pool = [&](Var x) {
    std::vector<Attr> attrs = window_attrs(node);
    attrs.emplace_back("kernel_shape", node.integers("kernel_shape"));
    attrs.emplace_back("ceil_mode", node.integer("ceil_mode", 0) != 0);
    attrs.emplace_back("count_include_pad", node.integer("count_include_pad", 0) != 0);
    return node.call("average_pool", {x}, attrs);
  };
  output_quantized(node, pooled_by_channel(node, dequantized(node, 0), pool), 3, byte_type(node));
}

void import_qlinear_global_average_pool(NodeImport& node) {
  const auto pool = [&](Var x) {
    Attr::Integers axes;
    const auto rank = static_cast<std::int64_t>(node.dims(x).size());
    for (std::int64_t axis = 2; axis < rank; ++axis) axes.push_back(axis);
    return node.call("reduce_mean", {x}, {{"axes", axes}});
  };
  output_quantized(node, pooled_by_channel(node, dequantized(node, 0), pool), 3, byte_type(node));
}

void import_qlinear_reduce_mean(NodeImport& node) {
  const Var y =
      node.call("reduce_mean", {dequantized(node, 0)},
                {{"axes", node.integers("axes")}, {"keep_axes", node.integer("keepdims", 1) != 0}});
  output_quantized(node, y, 3, byte_type(node));
}

// Scale and zero point of the result, then three inputs per part.
void import_qlinear_concat(NodeImport& node) {
  std::vector<Var> parts;
  for (std::size_t first = 2; first < node.input_count(); first += 3)
    parts.push_back(dequantized(node, first));
  if (parts.empty()) throw Error("QLinearConcat: there is nothing to join");
  output_quantized(node, node.call("concat", parts, {{"axis", node.integer("axis", 0)}}), 0,
                   node.dtype(node.input(2)));
}

void import_qlinear_where(NodeImport& node) {
  const Var y = node.call("where", {node.input(0), dequantized(node, 1), dequantized(node, 4)});
  output_quantized(node, y, 7, node.dtype(node.input(1)));
}

Var transposed_if(NodeImport& node, const char* flag, Var x) {
  if (node.integer(flag, 0) == 0) return x;
  return node.call("transpose", {x}, {{"perm", Attr::Integers{1, 0}}});
}

// The bias is i32 with the product of both scales. Without a result scale the result is a float.
void import_qgemm(NodeImport& node) {
  const std::int64_t columns = node.integer("transB", 0) != 0 ? 0 : 1;
  const Var a = transposed_if(node, "transA", dequantized(node, 0));
  const Var b = transposed_if(node, "transB", dequantized(node, 3, columns));
  const double alpha = node.real("alpha", 1);
  Var y = node.call("matmul", {a, b});
  if (node.has_input(6)) {
    y = y + cast_to(node.input(6), DType::F32) * (node.input(1) * node.input(4));
  }
  if (alpha != 1) y = y * alpha;
  if (node.has_input(7)) {
    output_quantized(node, y, 7, byte_type(node));
  } else {
    node.output(y);
  }
}

void import_matmul_integer_to_float(NodeImport& node) {
  const Var sums =
      integer_product(node.input(0), node.input_or_none(4), node.input(1), node.input_or_none(5));
  const Var y = sums * (node.input(2) * node.input(3));
  node.output(node.has_input(6) ? y + node.input(6) : y);
}

void import_dynamic_quantize_matmul(NodeImport& node) {
  const Var y =
      dynamic_product(node.input(0), {node.input(1), node.input(2), node.input_or_none(3)});
  node.output(node.has_input(4) ? y + node.input(4) : y);
}

// Unpacks bytes of several narrow numbers, lowest bits first: the last axis grows.
Var unpacked_bits(NodeImport& node, Var bytes, std::int64_t bits) {
  if (bits == 8) return bytes;
  const Dims dims = node.dims(bytes);
  Dims apart = dims, whole = dims;
  apart.emplace_back(1);
  const Var column = reshape_to(bytes, apart);
  std::vector<Var> parts;
  for (std::int64_t shift = 0; shift < 8; shift += bits) {
    const Var low = shift == 0
                        ? column
                        : node.call("shift_right",
                                    {column, node.build.scalar(static_cast<double>(shift), bytes)});
    parts.push_back(node.call(
        "bit_and", {low, node.build.scalar(static_cast<double>((1 << bits) - 1), bytes)}));
  }
  whole.back() = dims.back() * (8 / bits);
  return reshape_to(node.call("concat", parts, {{"axis", -1}}), whole);
}

Var first_columns(NodeImport& node, Var x, std::int64_t count) {
  if (node.dims(x).back() == Dim(count)) return x;
  return node.call("slice", {x},
                   {{"starts", Attr::Integers{0}},
                    {"ends", Attr::Integers{count}},
                    {"axes", Attr::Integers{-1}}});
}

/// Weights [N, K] in blocks along K, each with a scale and an optional zero point.
void import_matmul_nbits(NodeImport& node) {
  const std::int64_t k = node.integer("K"), n = node.integer("N"), bits = node.integer("bits", 4),
                     block = node.integer("block_size");
  if (node.integer("weight_prepacked", 0) != 0) node.unsupported("weights packed for one device");
  if (k < 1 || n < 1 || block < 1 || (bits != 2 && bits != 4 && bits != 8)) {
    throw Error("MatMulNBits: an attribute is out of range")
        .expected("K, N and block_size of 1 or more, bits of 2, 4 or 8")
        .got("K ", k, ", N ", n, ", block_size ", block, ", bits ", bits);
  }
  if (node.has_input(4)) node.unsupported("columns in another order (g_idx)");
  const Var a = node.input(0);
  const DType dtype = node.dtype(a);
  const std::int64_t blocks = (k + block - 1) / block, stored = (block * bits + 7) / 8;
  if (block * bits % 8 != 0) node.unsupported("blocks that end within a byte");
  const Var bytes = reshape_to(node.input(1), {n, blocks * stored});
  const Var codes = reshape_to(unpacked_bits(node, bytes, bits), {n, blocks, block});
  const Var scales = reshape_to(node.input(2), {n, blocks, 1});
  Var zero;
  if (!node.has_input(3)) {
    zero = node.build.constant(
        Tensor::scalar(dtype, static_cast<double>(std::int64_t{1} << (bits - 1))));
  } else if (const Var given = node.input(3); is_float(node.dtype(given))) {
    zero = reshape_to(given, {n, blocks, 1});
  } else {
    const Var rows = reshape_to(given, {n, (blocks * bits + 7) / 8});
    const Var each = first_columns(node, unpacked_bits(node, rows, bits), blocks);
    zero = cast_to(reshape_to(each, {n, blocks, 1}), dtype);
  }
  const Var weights = (cast_to(codes, dtype) - zero) * scales;
  const Var matrix = first_columns(node, reshape_to(weights, {n, blocks * block}), k);
  const Var y =
      node.call("matmul", {a, node.call("transpose", {matrix}, {{"perm", Attr::Integers{1, 0}}})});
  node.output(node.has_input(5) ? y + node.input(5) : y);
}

constexpr Handler microsoft_quantized_table[] = {
    {"DynamicQuantizeMatMul", import_dynamic_quantize_matmul, "com.microsoft"},
    {"MatMulIntegerToFloat", import_matmul_integer_to_float, "com.microsoft"},
    {"MatMulNBits", import_matmul_nbits, "com.microsoft"},
    {"QGemm", import_qgemm, "com.microsoft"},
    {"QLinearAdd", import_qlinear_binary, "com.microsoft"},
    {"QLinearAveragePool", import_qlinear_average_pool, "com.microsoft"},
    {"QLinearConcat", import_qlinear_concat, "com.microsoft"},
    {"QLinearGlobalAveragePool", import_qlinear_global_average_pool, "com.microsoft"},
    {"QLinearLeakyRelu", import_qlinear_activation, "com.microsoft"},
    {"QLinearMul", import_qlinear_binary, "com.microsoft"},
    {"QLinearReduceMean", import_qlinear_reduce_mean, "com.microsoft"},
    {"QLinearSigmoid", import_qlinear_activation, "com.microsoft"},
    {"QLinearSoftmax", import_qlinear_softmax, "com.microsoft"},
    {"QLinearWhere", import_qlinear_where, "com.microsoft"},
};

}  // namespace

std::span<const Handler> microsoft_quantized_handlers() { return microsoft_quantized_table; }

}  // namespace tenon::frontends::onnx
