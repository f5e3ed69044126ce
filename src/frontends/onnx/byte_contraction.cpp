#include "frontends/onnx/byte_contraction.h"

#include "frontends/onnx/window_attrs.h"
#include "ops/definition/var_ops.h"

#include <algorithm>
#include <array>

namespace tenon::frontends::onnx {
namespace {

constexpr std::size_t kLeft = 0, kRight = 1, kLeftZero = 2, kRightZero = 3;

/// The operands of a contraction of bytes.
struct Bytes {
  Var a, b;
  Var a_zero;               // of a's dtype, no axes
  std::int64_t b_zero = 0;  // of b after its change to i8
  Tensor weights;           // b's elements
};

std::optional<std::int64_t> constant_zero_point(const NodeImport& node, std::size_t input) {
  if (!node.has_input(input)) return 0;
  const std::optional<Tensor> value = node.constant_input(input);
  if (!value || value->size() != 1) return std::nullopt;
  return value->integer_at(0);
}

// Returns u8 elements less 128 as i8.
Tensor as_signed(const Tensor& bytes) {
  std::vector<std::int8_t> values;
  values.reserve(static_cast<std::size_t>(bytes.size()));
  for (const std::uint8_t byte : bytes.as<std::uint8_t>()) {
    values.push_back(static_cast<std::int8_t>(byte - 128));
  }
  return Tensor::of(DType::I8, bytes.shape(), values);
}

std::optional<Bytes> bytes_of(NodeImport& node) {
  if (!node.has_input(kLeftZero) || node.constant_input(kLeftZero)) return std::nullopt;
  const Var zero = node.input(kLeftZero);
  const bool is_one = node.type(zero).is_tensor() && element_count(node.type(zero).tensor()) == 1;
  const std::optional<std::int64_t> b_zero = constant_zero_point(node, kRightZero);
  const std::optional<Tensor> weights = node.constant_input(kRight);
  if (!is_one || !b_zero || !weights) return std::nullopt;
  if (weights->dtype() != DType::U8 && weights->dtype() != DType::I8) return std::nullopt;
  Bytes bytes{node.input(kLeft), node.input(kRight), reshape_to(zero, {}), *b_zero, *weights};
  // Byte kernels multiply u8 by i8.
  if (bytes.weights.dtype() == DType::U8) {
    bytes.weights = as_signed(bytes.weights);
    bytes.b = node.build.constant(bytes.weights);
    bytes.b_zero -= 128;
  }
  return bytes;
}

// Returns the sums of b - q over the middle of three axes.
Var sums_of_weights(NodeImport& node, const Bytes& bytes, std::array<std::int64_t, 3> extents,
                    Shape shape) {
  const auto [outer, reduced, inner] = extents;
  std::vector<std::int32_t> sums(static_cast<std::size_t>(outer * inner),
                                 static_cast<std::int32_t>(-bytes.b_zero * reduced));
  const std::span<const std::int8_t> weights = bytes.weights.as<std::int8_t>();
  for (std::int64_t k = 0; k < bytes.weights.size(); ++k) {
    const std::int64_t at = k / (reduced * inner) * inner + k % inner;
    sums[static_cast<std::size_t>(at)] += weights[static_cast<std::size_t>(k)];
  }
  return node.build.constant(Tensor::of(DType::I32, std::move(shape), sums));
}

Var sums_along(Var bytes, std::int64_t axis) {
  return bytes.builder().call("reduce_sum", {cast_to(bytes, DType::I32)},
                              {{"axes", Attr::Integers{axis}}});
}

Var in_i32(std::string_view op, Var a, Var b, std::vector<Attr> attrs) {
  attrs.emplace_back("out_dtype", "i32");
  return a.builder().call(op, {a, b}, attrs);
}

// Adds the terms of both zero points to the sums of products: `b_sums` are sums of b - q.
Var corrected(Var products, const Bytes& bytes, Var b_sums, auto a_sums) {
  const Var y = products - cast_to(bytes.a_zero, DType::I32) * b_sums;
  return bytes.b_zero == 0 ? y : y - a_sums() * static_cast<double>(bytes.b_zero);
}

}  // namespace

std::optional<Var> integer_matmul(NodeImport& node) {
  if (node.rank(node.input(kRight)) != 2) return std::nullopt;
  const std::optional<Bytes> bytes = bytes_of(node);
  if (!bytes) return std::nullopt;
  const Shape& shape = bytes->weights.shape();
  const Var b_sums = sums_of_weights(node, *bytes, {1, shape[0], shape[1]}, {shape[1]});
  return corrected(in_i32("matmul", bytes->a, bytes->b, {}), *bytes, b_sums,
                   [&] { return sums_along(bytes->a, -1); });
}

std::optional<Var> integer_conv(NodeImport& node) {
  const std::size_t rank = node.rank(node.input(kRight)).value_or(0);
  if (rank < 3 || node.text("auto_pad", "NOTSET") != "NOTSET") return std::nullopt;
  std::optional<Bytes> bytes = bytes_of(node);
  if (!bytes || (node.integer("group", 1) != 1 && bytes->b_zero != 0)) return std::nullopt;
  std::vector<Attr> attrs = convolution_attrs(node);
  std::erase_if(attrs, [](const Attr& attr) { return attr.name == "pads"; });
  const Attr::Integers pads = node.integers("pads");
  if (std::ranges::any_of(pads, [](std::int64_t count) { return count != 0; })) {
    const auto half = static_cast<std::ptrdiff_t>(pads.size() / 2);
    Attr::Integers all(2, 0);
    all.insert(all.end(), pads.begin(), pads.begin() + half);
    all.insert(all.end(), 2, 0);
    all.insert(all.end(), pads.begin() + half, pads.end());
    bytes->a = node.call("pad", {bytes->a, bytes->a_zero}, {{"pads", all}});
  }
  const std::int64_t channels = bytes->weights.shape()[0];
  Shape shape(rank - 1, 1);
  shape.front() = channels;
  const Var b_sums = sums_of_weights(
      node, *bytes, {channels, bytes->weights.size() / std::max<std::int64_t>(channels, 1), 1},
      shape);
  return corrected(in_i32("conv", bytes->a, bytes->b, attrs), *bytes, b_sums, [&] {
    Dims window = node.dims(bytes->b);
    window[0] = window[1] = 1;
    const Var ones = expand_to(node.build.scalar(1, b_sums), window);
    return in_i32("conv", sums_along(bytes->a, 1), ones, attrs);
  });
}

}  // namespace tenon::frontends::onnx
