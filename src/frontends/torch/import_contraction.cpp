#include "base/text.h"
#include "frontends/torch/import_node.h"
#include "ops/definition/var_ops.h"

#include <cmath>

namespace tenon::frontends::torch {
namespace {

Var product_of(NodeImport& n, Var a, Var b) { return n.call("matmul", {a, b}); }

void import_linear(NodeImport& n) {
  const Var weight = n.tensor("weight");
  const Var transposed = n.rank(weight) == 2 ? n.swapped(weight, 0, 1) : weight;
  const Var y = product_of(n, n.tensor("input"), transposed);
  n.result(n.has("bias") ? y + n.tensor("bias") : y);
}

void import_matmul(NodeImport& n) {
  const std::string_view second = n.has("mat2")     ? "mat2"
                                  : n.has("vec")    ? "vec"
                                  : n.has("vec2")   ? "vec2"
                                  : n.has("tensor") ? "tensor"
                                                    : "other";
  const Var a = n.first(), b = n.tensor(second);
  if (n.rank(a) == 1 && n.rank(b) == 1)
    return n.result(n.call("reduce_sum", {a * b}, {{"axes", Dims{0}}, {"keep_axes", false}}));
  n.result(product_of(n, a, b));
}

void import_outer(NodeImport& n) {
  const Var a = n.first(), b = n.tensor("vec2");
  n.result(reshape_to(a, {n.dims(a).at(0), 1}) * reshape_to(b, {1, n.dims(b).at(0)}));
}

// beta * self + alpha * a b
void import_addmm(NodeImport& n) {
  const bool is_batched = n.op == "baddbmm";
  const Var a = n.tensor(is_batched ? "batch1" : n.op == "addmv" ? "mat" : "mat1");
  const Var b = n.tensor(is_batched ? "batch2" : n.op == "addmv" ? "vec" : "mat2");
  const double alpha = n.real("alpha", 1), beta = n.real("beta", 1);
  const DType dtype = n.result_dtype();
  Var y = product_of(n, a, b);
  if (alpha != 1) y = n.call("mul", {y, n.number(alpha, dtype)});
  if (beta == 0) return n.result(y);
  Var bias = n.operand("self", dtype);
  if (beta != 1) bias = n.call("mul", {bias, n.number(beta, dtype)});
  n.result(n.call("add", {y, bias}));
}

void import_einsum(NodeImport& n) {
  std::string equation = n.text("equation");
  std::erase(equation, ' ');
  n.result(n.call("einsum", n.tensors("tensors"), {{"equation", word(equation)}}));
}

// A convolution accepts an image without the batch's axis.
struct Image {
  Var value;
  bool is_single;
};
Image image_of(NodeImport& n, std::size_t axes) {
  const Var x = n.tensor("input");
  if (n.rank(x) != axes + 1) return {x, false};
  Dims dims = n.dims(x);
  dims.insert(dims.begin(), Dim(1));
  return {reshape_to(x, dims), true};
}
void image_result(NodeImport& n, const Image& image, Var y) {
  if (image.is_single) {
    Dims dims = n.dims(y);
    dims.erase(dims.begin());
    y = reshape_to(y, dims);
  }
  n.result(y);
}

Attributes convolution_attrs(NodeImport& n, std::size_t axes) {
  Attributes attrs{{"strides", n.for_axes("stride", axes, 1)},
                   {"dilations", n.for_axes("dilation", axes, 1)},
                   {"groups", n.extent("groups", Dim(1))}};
  if (n.overload == "padding") {
    attrs.set("auto_pad", word(n.text("padding", "valid") == "same" ? "same_upper" : "valid"));
    return attrs;
  }
  Dims pads = n.for_axes("padding", axes, 0);
  pads.insert(pads.end(), pads.begin(), pads.end());
  attrs.set("pads", pads);
  return attrs;
}

void convolve(NodeImport& n, bool is_transposed) {
  const Var weight = n.tensor("weight");
  if (n.rank(weight) < 3) n.unsupported("weights without spatial axes");
  const std::size_t axes = n.rank(weight) - 2;
  const Image image = image_of(n, axes);
  Attributes attrs = convolution_attrs(n, axes);
  if (is_transposed) attrs.set("output_padding", n.for_axes("output_padding", axes, 0));
  image_result(n, image,
               n.call(is_transposed ? "conv_transpose" : "conv",
                      {image.value, weight, n.tensor_or_none("bias")}, attrs));
}
void import_conv(NodeImport& n) { convolve(n, false); }
void import_conv_transpose(NodeImport& n) { convolve(n, true); }
void import_convolution(NodeImport& n) { convolve(n, n.flag("transposed")); }

// Attention over [batch, heads, length, size]; other leading axes are merged into the batch.
Var as_heads(NodeImport& n, Var x) {
  Dims dims = n.dims(x);
  if (dims.size() == 4) return x;
  if (dims.size() < 2) n.unsupported("an operand without a length and a size");
  Dims leading(dims.begin(), dims.end() - 2);
  return reshape_to(
      x, {leading.size() > 1 ? product({leading.begin(), leading.end() - 1}) : Dim(1),
          leading.empty() ? Dim(1) : leading.back(), dims[dims.size() - 2], dims.back()});
}
void import_attention(NodeImport& n) {
  if (n.real("dropout_p", 0) != 0) n.unsupported("dropout");
  const Var query = n.tensor("query");
  Attributes attrs{{"causal", n.flag("is_causal")}};
  if (n.has("scale")) attrs.set("scale", n.real("scale"));
  const std::string_view mask_name = n.has("attn_bias") ? "attn_bias" : "attn_mask";
  Var mask;
  if (n.has(mask_name)) {
    mask = n.tensor(mask_name);
    const std::size_t rank = n.rank(mask);
    if (rank > 4 || n.rank(query) > 4) n.unsupported("a mask over more than four axes");
    if (rank == 3 && n.rank(query) == 3) {
      mask = as_heads(n, mask);
    } else if (rank < 4) {
      Dims dims = n.dims(mask);
      dims.insert(dims.begin(), 4 - rank, Dim(1));
      mask = reshape_to(mask, dims);
    }
  }
  const Var y = n.call(
      "attention",
      {as_heads(n, query), as_heads(n, n.tensor("key")), as_heads(n, n.tensor("value")), mask},
      attrs);
  n.result(reshape_to(y, n.result_dims()));
}

// Distances between all rows.
void import_distances(NodeImport& n) {
  const double order = n.real("p", 2);
  if (order != 2 && order != 1) n.unsupported("an order other than 1 or 2");
  const Var a = n.first(), b = n.tensor("x2");
  Dims of_a = n.dims(a), of_b = n.dims(b);
  of_a.insert(of_a.end() - 1, Dim(1));
  of_b.insert(of_b.end() - 2, Dim(1));
  const Var offset = reshape_to(a, of_a) - reshape_to(b, of_b);
  n.result(n.call(order == 2 ? "reduce_l2" : "reduce_l1", {offset},
                  {{"axes", Dims{-1}}, {"keep_axes", false}}));
}

constexpr Handler contraction_table[] = {
    {"linear", import_linear},
    {"mm", import_matmul},
    {"bmm", import_matmul},
    {"mv", import_matmul},
    {"dot", import_matmul},
    {"matmul", import_matmul},
    {"outer", import_outer},
    {"addmm", import_addmm},
    {"addmv", import_addmm},
    {"baddbmm", import_addmm},
    {"einsum", import_einsum},
    {"conv1d", import_conv},
    {"conv2d", import_conv},
    {"conv3d", import_conv},
    {"conv_transpose1d", import_conv_transpose},
    {"conv_transpose2d", import_conv_transpose},
    {"conv_transpose3d", import_conv_transpose},
    {"convolution", import_convolution},
    {"scaled_dot_product_attention", import_attention},
    {"_scaled_dot_product_flash_attention", import_attention},
    {"_scaled_dot_product_flash_attention_for_cpu", import_attention},
    {"_scaled_dot_product_efficient_attention", import_attention},
    {"cdist", import_distances},
    {"_cdist_forward", import_distances},
    {"_euclidean_dist", import_distances},
};

}  // namespace

std::span<const Handler> contraction_handlers() { return contraction_table; }

}  // namespace tenon::frontends::torch
