#include "base/error.h"
#include "frontends/onnx/import_node.h"
#include "frontends/onnx/plain_ops.h"
#include "ops/definition/var_ops.h"

namespace tenon::frontends::onnx {
namespace {

Dim product_of(const Dims& dims, std::size_t first, std::size_t last) {
  Dim product = 1;
  for (std::size_t axis = first; axis < last; ++axis) product = product * dims[axis];
  return product;
}

// Before opset 13 all axes from `axis` on were flattened.
Var over_flat_axes(NodeImport& node, std::string_view op, std::int64_t axis) {
  const Var x = node.input(0);
  const Dims dims = node.dims(x);
  const auto rank = static_cast<std::int64_t>(dims.size());
  const std::int64_t front = axis < 0 ? axis + rank : axis;
  if (front < 0 || front > rank) {
    throw Error(concat(node.op_type(), ": axis is outside the tensor's rank"))
        .expected("an axis in [", -rank, ", ", rank, "]")
        .got(axis);
  }
  if (front + 1 == rank) return node.call(op, {x}, {{"axis", -1}});
  const auto split = static_cast<std::size_t>(front);
  const Dims flat{product_of(dims, 0, split), product_of(dims, split, dims.size())};
  return reshape_to(node.call(op, {reshape_to(x, flat)}, {{"axis", 1}}), dims);
}

void import_softmax(NodeImport& node) {
  if (node.opset() >= 13) return import_plain(node);
  node.output(over_flat_axes(node, find_plain(node.op_type())->op, node.integer("axis", 1)));
}

// The batch's own statistics, which training nodes before opset 14 also return.
void output_saved_statistics(NodeImport& node, Var x) {
  std::vector<std::int64_t> axes;
  for (std::size_t axis = 0; axis < node.build.rank(x); ++axis) {
    if (axis != 1) axes.push_back(static_cast<std::int64_t>(axis));
  }
  const Var mean = node.call("reduce_mean", {x}, {{"axes", axes}});
  const Var centred = x - mean;
  const std::vector<Attr> dropped{{"axes", axes}, {"keep_axes", false}};
  if (node.wants_output(3)) node.output(3, node.call("reduce_mean", {x}, dropped));
  if (node.wants_output(4)) node.output(4, node.call("reduce_mean", {centred * centred}, dropped));
}

// Opsets 1 to 6 have `is_test`; in opsets 7 to 13 more outputs than y mean training. Models
// exported for inference have only the output y, for any attribute.
bool is_training(const NodeImport& node) {
  if (node.opset() >= 14) return node.integer("training_mode", 0) != 0;
  return node.wants_output(1) && node.integer("is_test", 0) == 0;
}

void import_batch_norm(NodeImport& node) {
  Var x = node.input(0);
  const Dims dims = node.dims(x);
  if (dims.empty()) throw Error("BatchNormalization: the input has no axes").got(node.type(x));
  std::vector<Var> operands{x};
  for (std::size_t k = 1; k < 5; ++k) operands.push_back(node.input(k));
  if (node.integer("spatial", 1) == 0) {
    // Statistics per position: treats each position as a channel.
    const Dim channels = product_of(dims, 1, dims.size());
    x = reshape_to(x, {dims[0], channels});
    for (std::size_t k = 1; k < 5; ++k) operands[k] = reshape_to(operands[k], {channels});
  } else if (dims.size() == 1) {
    x = reshape_to(x, {dims[0], 1});
  }
  operands[0] = x;
  const Attr epsilon("epsilon", node.real("epsilon", 1e-5));
  if (!is_training(node)) {
    node.output(reshape_to(node.call("batch_norm", operands, {epsilon}), dims));
    return;
  }
  const std::vector<Var> results =
      node.build.call_all("batch_norm_training", operands,
                          {epsilon, {"momentum", node.real("momentum", 0.9)}}, {"", "", ""});
  node.output(0, reshape_to(results[0], dims));
  for (std::size_t k = 1; k < 3; ++k) {
    if (!node.wants_output(k)) continue;
    node.output(k, reshape_to(results[k], node.dims(node.input(k + 2))));
  }
  output_saved_statistics(node, x);
}

// Statistics are computed in f32 unless an attribute differs.
std::vector<Attr> norm_attrs(const NodeImport& node) {
  std::vector<Attr> attrs{{"epsilon", node.real("epsilon", 1e-5)}};
  const DType stash = node.element("stash_type", DType::F32);
  if (stash != DType::F32) attrs.emplace_back("stash", to_string(stash));
  return attrs;
}

// Opset 18 has a factor per group, 21 a factor per channel.
Var by_channel(NodeImport& node, Var vector, std::int64_t groups, const Dim& channels) {
  if (node.opset() >= 21) return vector;
  const Var column = reshape_to(vector, {groups, 1});
  return reshape_to(expand_to(column, {groups, floor_div(channels, groups)}), {channels});
}

void import_group_norm(NodeImport& node) {
  const Var x = node.input(0);
  const std::int64_t groups = node.integer("num_groups", 1);
  const Dims dims = node.dims(x);
  if (dims.size() < 2 || groups < 1) {
    throw Error("GroupNormalization: there are no groups of channels")
        .expected("x: [N, C, …] and num_groups of 1 or more")
        .got("x: ", node.type(x), ", num_groups: ", groups);
  }
  std::vector<Attr> attrs = norm_attrs(node);
  attrs.emplace_back("groups", groups);
  const Var scale = by_channel(node, node.input(1), groups, dims[1]);
  const Var bias = by_channel(node, node.input(2), groups, dims[1]);
  node.output(node.call("group_norm", {x, scale, bias}, attrs));
}

void import_layer_norm(NodeImport& node) {
  std::vector<Attr> attrs = norm_attrs(node);
  attrs.emplace_back("axis", node.integer("axis", -1));
  std::vector<std::string> names{""};
  for (std::size_t k = 1; k < 3; ++k) names.emplace_back(node.wants_output(k) ? "" : "_");
  const std::vector<Var> results = node.build.call_all(
      "layer_norm", {node.input(0), node.input(1), node.input_or_none(2)}, attrs, names);
  node.output(0, results[0]);
  for (std::size_t k = 1; k < 3; ++k) {
    if (!node.wants_output(k)) continue;
    // Statistics of f64 are computed in f64 regardless; only the returned ones have the requested
    // type.
    const bool is_known = node.type(results[k]).is_tensor();
    const DType stash = node.element("stash_type", DType::F32);
    node.output(k, is_known ? cast_to(results[k], stash) : results[k]);
  }
}

void import_rms_norm(NodeImport& node) {
  std::vector<Attr> attrs = norm_attrs(node);
  attrs.emplace_back("axis", node.integer("axis", -1));
  node.output(node.call("rms_norm", {node.input(0), node.input(1)}, attrs));
}

// Before its standardization in opset 9 it normalized each image separately.
void import_mean_variance_norm(NodeImport& node) {
  const Var x = node.input(0);
  std::vector<std::int64_t> axes = node.integers("axes", {0, 2, 3});
  if (node.opset() < 9) {
    axes = {2, 3};
    if (node.integer("across_channels", 0) != 0) axes = {1, 2, 3};
    if (node.integer("normalize_variance", 1) == 0) {
      node.output(x - node.call("reduce_mean", {x}, {{"axes", axes}}));
      return;
    }
  }
  node.output(node.call("mean_variance_norm", {x}, {{"axes", axes}}));
}

void import_cross_entropy(NodeImport& node) {
  const Var log_probabilities = node.call("log_softmax", {node.input(0)}, {{"axis", 1}});
  std::vector<Attr> attrs{{"reduction", node.text("reduction", "mean")}};
  if (node.has_attr("ignore_index")) {
    attrs.emplace_back("ignore_index", node.integer("ignore_index"));
  }
  node.output(
      0, node.call("nll_loss", {log_probabilities, node.input(1), node.input_or_none(2)}, attrs));
  if (node.wants_output(1)) node.output(1, log_probabilities);
}

constexpr Handler normalization_table[] = {
    {"BatchNormalization", import_batch_norm},
    {"GroupNormalization", import_group_norm},
    {"Hardmax", import_softmax},
    {"LayerNormalization", import_layer_norm},
    {"LogSoftmax", import_softmax},
    {"MeanVarianceNormalization", import_mean_variance_norm},
    {"RMSNormalization", import_rms_norm},
    {"Softmax", import_softmax},
    {"SoftmaxCrossEntropyLoss", import_cross_entropy},
};

}  // namespace

std::span<const Handler> normalization_handlers() { return normalization_table; }

}  // namespace tenon::frontends::onnx
