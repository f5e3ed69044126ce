#include "frontends/onnx/byte_contraction.h"

#include "frontends/onnx/window_attrs.h"
#include "ops/var_ops.h"

#include <algorithm>

namespace tenon::onnx {
namespace {

constexpr std::size_t kLeft = 0, kRight = 1, kLeftZero = 2, kRightZero = 3;

/// The operands of a contraction of bytes.
struct Bytes {
  Var a, b;
  Var a_zero;               // of a's dtype, no axes
  std::int64_t b_zero = 0;  // of b after its change to i8
};

std::optional<std::int64_t> constant_zero_point(const NodeImport& node, std::size_t input) {
  if (!node.has_input(input)) return 0;
  const std::optional<Tensor> value = node.constant_input(input);
  if (!value || value->size() != 1) return std::nullopt;
  return value->integer_at(0);
}

std::optional<Bytes> bytes_of(NodeImport& node) {
  if (!node.has_input(kLeftZero) || node.constant_input(kLeftZero)) return std::nullopt;
  const Var zero = node.input(kLeftZero);
  const std::optional<std::int64_t> b_zero = constant_zero_point(node, kRightZero);
  const bool is_one = node.type(zero).is_tensor() && element_count(node.type(zero).tensor()) == 1;
  if (!b_zero || !is_one || !node.rank(node.input(kRight))) return std::nullopt;
  Bytes bytes{node.input(kLeft), node.input(kRight), reshape_to(zero, {}), *b_zero};
  // Byte kernels multiply u8 by i8.
  if (node.dtype(bytes.b) == DType::U8) {
    bytes.b = cast_to(cast_to(bytes.b, DType::I32) - 128, DType::I8);
    bytes.b_zero -= 128;
  }
  return bytes;
}

Var sum_over(Var x, Attr::Integers axes, bool keeps_axes) {
  return x.builder().call("reduce_sum", {x},
                          {{"axes", std::move(axes)}, {"keep_axes", keeps_axes}});
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

Var centred_weights(const Bytes& bytes) {
  return cast_to(bytes.b, DType::I32) - static_cast<double>(bytes.b_zero);
}

}  // namespace

std::optional<Var> integer_matmul(NodeImport& node) {
  const std::optional<std::size_t> rank = node.rank(node.input(kRight));
  if (rank.value_or(0) < 2) return std::nullopt;
  const std::optional<Bytes> bytes = bytes_of(node);
  if (!bytes) return std::nullopt;
  const Var b_sums = sum_over(centred_weights(*bytes), {-2}, *rank > 2);
  return corrected(in_i32("matmul", bytes->a, bytes->b, {}), *bytes, b_sums,
                   [&] { return sum_over(cast_to(bytes->a, DType::I32), {-1}, true); });
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
  Attr::Integers inner, channels(rank - 1, 1);
  for (std::size_t axis = 1; axis < rank; ++axis) inner.push_back(static_cast<std::int64_t>(axis));
  channels.front() = -1;
  const Var b_sums = node.call("reshape", {sum_over(centred_weights(*bytes), inner, false)},
                               {{"shape", channels}});
  return corrected(in_i32("conv", bytes->a, bytes->b, attrs), *bytes, b_sums, [&] {
    Dims window = node.dims(bytes->b);
    window[0] = window[1] = 1;
    const Var ones = expand_to(node.build.scalar(1, b_sums), window);
    return in_i32("conv", sum_over(cast_to(bytes->a, DType::I32), {1}, true), ones, attrs);
  });
}

}  // namespace tenon::onnx
