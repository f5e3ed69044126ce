// com.microsoft: fused products with epilogues and norms with residuals, as ONNX Runtime's
// optimiser writes them; imports each as its original operators.
#include "base/error.h"
#include "frontends/onnx/attention_heads.h"
#include "frontends/onnx/window_attrs.h"
#include "ops/definition/var_ops.h"

#include <algorithm>
#include <numeric>

namespace tenon::frontends::onnx {
namespace {

// Moves the first axis to the last but one if `batch_flag` is set; then swaps the last two.
Var arranged(NodeImport& node, Var x, const char* flag, const char* batch_flag) {
  const auto rank = static_cast<std::int64_t>(node.dims(x).size());
  const bool swaps = node.integer(flag, 0) != 0, moves = node.integer(batch_flag, 0) != 0;
  if (rank < 2 || (!swaps && !moves)) return x;
  Attr::Integers perm(static_cast<std::size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  if (moves) std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  if (swaps) std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return node.call("transpose", {x}, {{"perm", perm}});
}

void import_fused_matmul(NodeImport& node) {
  const Var a = arranged(node, node.input(0), "transA", "transBatchA");
  const Var b = arranged(node, node.input(1), "transB", "transBatchB");
  const Var product = node.call("matmul", {a, b});
  const double alpha = node.real("alpha", 1);
  node.output(alpha == 1 ? product : product * alpha);
}

// The parameters are a list, or separate attributes.
Var activated(NodeImport& node, Var x) {
  const std::string activation = node.text("activation");
  const std::vector<double> params = node.reals("activation_params");
  const auto param = [&](std::size_t k, const char* name, double otherwise) {
    return k < params.size() ? params[k] : node.real(name, otherwise);
  };
  if (activation.empty()) return x;
  if (activation == "Relu") return node.call("relu", {x});
  if (activation == "Tanh") return node.call("tanh", {x});
  if (activation == "Sigmoid") return node.call("sigmoid", {x});
  if (activation == "HardSwish") return node.call("hard_swish", {x});
  if (activation == "Softplus") return node.call("softplus", {x});
  if (activation == "Gelu") return node.call("gelu", {x});
  if (activation == "LeakyRelu") {
    return node.call("leaky_relu", {x}, {{"alpha", param(0, "activation_alpha", 0.01)}});
  }
  if (activation == "Elu")
    return node.call("elu", {x}, {{"alpha", param(0, "activation_alpha", 1)}});
  if (activation == "HardSigmoid") {
    return node.call(
        "hard_sigmoid", {x},
        {{"alpha", param(0, "activation_alpha", 0.2)}, {"beta", param(1, "activation_beta", 0.5)}});
  }
  if (activation == "Clip" && params.size() == 2) {
    return node.call("clip", {x, node.build.scalar(params[0], x), node.build.scalar(params[1], x)});
  }
  node.unsupported(concat("the activation '", activation, "'"));
}

void import_fused_conv(NodeImport& node) {
  Var y = node.call("conv", {node.input(0), node.input(1), node.input_or_none(2)},
                    convolution_attrs(node));
  if (node.has_input(3)) y = y + node.input(3);
  node.output(activated(node, y));
}

void import_fused_gemm(NodeImport& node) {
  const Var a = arranged(node, node.input(0), "transA", ""),
            b = arranged(node, node.input(1), "transB", "");
  Var y = node.call("matmul", {a, b});
  const double alpha = node.real("alpha", 1), beta = node.real("beta", 1);
  if (alpha != 1) y = y * alpha;
  if (node.has_input(2) && beta != 0) y = y + (beta == 1 ? node.input(2) : node.input(2) * beta);
  node.output(activated(node, y));
}

void import_gemm_fast_gelu(NodeImport& node) {
  Var y = node.call("matmul", {node.input(0), node.input(1)});
  if (node.has_input(2)) y = y + node.input(2);
  node.output(node.call("gelu", {y}, {{"approximate", "tanh"}}));
}

// The first half of the last axis times gelu of the second.
void import_bias_split_gelu(NodeImport& node) {
  const std::vector<Var> halves = node.build.call_all("split", {node.input(0) + node.input(1)},
                                                      std::vector<Attr>{{"axis", -1}}, {"", ""});
  node.output(halves[0] * node.call("gelu", {halves[1]}));
}

void import_bias_add(NodeImport& node) {
  node.output(node.input(0) + node.input(1) + node.input(2));
}

Var skip_sum(NodeImport& node, std::size_t bias) {
  const Var sum = node.input(0) + node.input(1);
  return node.has_input(bias) ? sum + node.input(bias) : sum;
}

std::vector<Attr> last_axis(const NodeImport& node, double epsilon) {
  return {{"axis", -1}, {"epsilon", node.real("epsilon", epsilon)}};
}

void import_skip_layer_norm(NodeImport& node) {
  const Var sum = skip_sum(node, 4);
  std::vector<std::string> names{""};
  for (std::size_t k = 1; k < 3; ++k) names.emplace_back(node.wants_output(k) ? "" : "_");
  const std::vector<Var> results = node.build.call_all(
      "layer_norm", {sum, node.input(2), node.input_or_none(3)}, last_axis(node, 1e-12), names);
  for (std::size_t k = 0; k < 3; ++k) {
    if (node.wants_output(k)) node.output(k, results[k]);
  }
  if (node.wants_output(3)) node.output(3, sum);
}

void import_skip_rms_norm(NodeImport& node) {
  const Var sum = skip_sum(node, 3);
  node.output(0, node.call("rms_norm", {sum, node.input(2)}, last_axis(node, 1e-12)));
  if (node.wants_output(3)) node.output(3, sum);
}

void import_simplified_layer_norm(NodeImport& node) {
  node.output(
      node.call("rms_norm", {node.input(0), node.input(1)},
                {{"axis", node.integer("axis", -1)}, {"epsilon", node.real("epsilon", 1e-5)}}));
}

void import_embed_layer_norm(NodeImport& node) {
  const Var ids = node.input(0);
  Var sum = node.call("gather", {node.input(2), ids});
  const Var place = node.has_input(8) ? node.input(8) : positions_along(node, ids, 1);
  sum = sum + node.call("gather", {node.input(3), place});
  if (node.has_input(1)) sum = sum + node.call("gather", {node.input(4), node.input(1)});
  node.ignore_input(4);
  node.output(0,
              node.call("layer_norm", {sum, node.input(5), node.input(6)}, last_axis(node, 1e-12)));
  if (node.wants_output(1)) {
    // Number of valid tokens of each row.
    const Var zero = node.build.constant(Tensor::of<std::int64_t>(DType::I32, {}, {0}));
    const Var count = node.has_input(7)
                          ? node.call("reduce_sum", {cast_to(node.input(7), DType::I32)},
                                      {{"axes", Attr::Integers{1}}, {"keep_axes", false}})
                          : expand_to(zero, {node.dims(ids)[0]});
    node.output(1, count);
  }
  node.ignore_input(7);
  if (node.wants_output(2)) node.output(2, sum);
}

// Images are channels last unless an attribute differs; a residual and a bias may be added first.
void import_microsoft_group_norm(NodeImport& node) {
  Var x = node.input(0);
  const bool has_skip = node.op_type() == "SkipGroupNorm";
  if (has_skip) {
    Var skip = node.input(3);
    if (const Dims dims = node.dims(skip); dims.size() == 2)
      skip = reshape_to(skip, {dims[0], 1, 1, dims[1]});
    x = x + skip;
    if (node.has_input(4)) x = x + node.input(4);
    if (node.wants_output(1)) node.output(1, x);
  }
  const std::int64_t axis = node.integer("channels_last", 1) != 0 ? -1 : 1;
  Var y =
      node.call("group_norm",
                {x, cast_to(node.input(1), node.dtype(x)), cast_to(node.input(2), node.dtype(x))},
                {{"groups", node.integer("groups", 1)},
                 {"axis", axis},
                 {"epsilon", node.real("epsilon", 1e-5)}});
  if (node.integer("activation", 0) == 1) y = node.call("swish", {y});
  node.output(0, y);
}

constexpr Handler microsoft_table[] = {
    {"BiasAdd", import_bias_add, "com.microsoft"},
    {"BiasSplitGelu", import_bias_split_gelu, "com.microsoft"},
    {"EmbedLayerNormalization", import_embed_layer_norm, "com.microsoft"},
    {"FusedConv", import_fused_conv, "com.microsoft"},
    {"FusedGemm", import_fused_gemm, "com.microsoft"},
    {"FusedMatMul", import_fused_matmul, "com.microsoft"},
    {"GemmFastGelu", import_gemm_fast_gelu, "com.microsoft"},
    {"GroupNorm", import_microsoft_group_norm, "com.microsoft"},
    // ONNX Runtime writes this one in ONNX's own domain.
    {"SimplifiedLayerNormalization", import_simplified_layer_norm},
    {"SimplifiedLayerNormalization", import_simplified_layer_norm, "com.microsoft"},
    {"SkipGroupNorm", import_microsoft_group_norm, "com.microsoft"},
    {"SkipLayerNormalization", import_skip_layer_norm, "com.microsoft"},
    {"SkipSimplifiedLayerNormalization", import_skip_rms_norm, "com.microsoft"},
    {"TransposeMatMul", import_fused_matmul, "com.microsoft"},
};

}  // namespace

std::span<const Handler> microsoft_handlers() { return microsoft_table; }

}  // namespace tenon::frontends::onnx
