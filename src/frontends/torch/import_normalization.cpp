#include "frontends/torch/import_node.h"
#include "ops/definition/var_ops.h"

#include <numeric>

namespace tenon::frontends::torch {
namespace {

// A weight or bias, or its neutral value for every channel.
Var factor(NodeImport& n, std::string_view name, DType dtype, const Dims& dims, double neutral) {
  if (n.has(name)) return cast_to(n.tensor(name), dtype);
  return expand_to(n.number(neutral, dtype), dims);
}

void import_batch_norm(NodeImport& n) {
  const Var x = n.tensor("input");
  const bool is_training = n.flag("training") || n.flag("use_input_stats");
  if (is_training) n.unsupported("statistics of the batch; call eval() before the export");
  const Dims channels = {n.dims(x).at(1)};
  const DType dtype = n.dtype(n.tensor("running_mean"));
  n.result(
      n.call("batch_norm",
             {x, factor(n, "weight", dtype, channels, 1), factor(n, "bias", dtype, channels, 0),
              n.tensor("running_mean"), n.tensor("running_var")},
             {{"epsilon", n.real("eps", 1e-5)}}));
}

void import_layer_norm(NodeImport& n) {
  const Var x = n.tensor("input");
  const Dims shape = n.extents("normalized_shape");
  const auto axis = -static_cast<std::int64_t>(shape.size());
  const Attributes attrs{{"axis", Dim(axis)}, {"epsilon", n.real("eps", 1e-5)}};
  std::vector<Var> operands = {x, factor(n, "weight", n.dtype(x), shape, 1)};
  if (n.has("bias")) operands.push_back(n.tensor("bias"));
  if (n.result_count() == 1) return n.result(n.call("layer_norm", operands, attrs));
  n.results(n.call_all("layer_norm", operands, attrs, 3));
}

void import_rms_norm(NodeImport& n) {
  const Var x = n.tensor("input");
  const Dims shape = n.extents("normalized_shape");
  const auto axis = -static_cast<std::int64_t>(shape.size());
  // Without epsilon PyTorch takes the distance from 1 to the next number.
  const double usual = n.dtype(x) == DType::F64    ? 2.220446049250313e-16
                       : n.dtype(x) == DType::F16  ? 9.765625e-4
                       : n.dtype(x) == DType::BF16 ? 7.8125e-3
                                                   : 1.1920928955078125e-07;
  n.result(n.call("rms_norm", {x, factor(n, "weight", n.dtype(x), shape, 1)},
                  {{"axis", Dim(axis)}, {"epsilon", n.real("eps", usual)}}));
}

void import_group_norm(NodeImport& n) {
  const Var x = n.tensor("input");
  const Dims channels = {n.dims(x).at(1)};
  const Var scale = factor(n, "weight", n.dtype(x), channels, 1),
            bias = factor(n, "bias", n.dtype(x), channels, 0);
  const bool is_native = n.op == "native_group_norm";
  n.result(n.call("group_norm", {x, scale, bias},
                  {{"groups", n.extent(is_native ? "group" : "num_groups")},
                   {"epsilon", n.real("eps", 1e-5)}}));
}

void import_instance_norm(NodeImport& n) {
  if (!n.flag("use_input_stats", true)) return import_batch_norm(n);
  const Var x = n.tensor("input");
  const Dims channels = {n.dims(x).at(1)};
  n.result(n.call(
      "instance_norm",
      {x, factor(n, "weight", n.dtype(x), channels, 1), factor(n, "bias", n.dtype(x), channels, 0)},
      {{"epsilon", n.real("eps", 1e-5)}}));
}

// v * g / |v|, the norm over all axes but one.
void import_weight_norm(NodeImport& n) {
  const Var v = n.tensor("v"), g = n.tensor("g");
  const std::size_t kept = n.axis("dim", n.rank(v), 0);
  std::vector<std::int64_t> axes;
  for (std::size_t k = 0; k < n.rank(v); ++k) {
    if (k != kept) axes.push_back(static_cast<std::int64_t>(k));
  }
  n.result(v * (g / n.call("reduce_l2", {v}, {{"axes", as_dims(axes)}})));
}

// Statistics of each batch as a core operator: batch norm without running values is instance norm
// of one batch.
void import_no_stats(NodeImport& n) {
  if (n.has("running_mean"))
    n.unsupported("statistics of the batch; call eval() before the export");
  const Var x = n.tensor("input");
  const std::size_t rank = n.rank(x);
  std::vector<std::int64_t> axes;
  Dims dims(rank, 1);
  dims.at(1) = n.dims(x).at(1);
  for (std::size_t k = 0; k < rank; ++k) {
    if (k != 1) axes.push_back(static_cast<std::int64_t>(k));
  }
  const Attributes over{{"axes", as_dims(axes)}};
  const Var offset = x - n.call("reduce_mean", {x}, over);
  const Var variance = n.call("reduce_mean", {offset * offset}, over);
  Var y = offset / n.call("sqrt", {variance + n.real("eps", 1e-5)});
  if (n.has("weight")) y = y * reshape_to(n.tensor("weight"), dims);
  if (n.has("bias")) y = y + reshape_to(n.tensor("bias"), dims);
  n.result(y);
}

constexpr Handler normalization_table[] = {
    {"batch_norm", import_batch_norm},
    {"_native_batch_norm_legit_no_training", import_batch_norm},
    {"_native_batch_norm_legit", import_no_stats},
    {"native_batch_norm", import_batch_norm},
    {"cudnn_batch_norm", import_batch_norm},
    {"layer_norm", import_layer_norm},
    {"native_layer_norm", import_layer_norm},
    {"rms_norm", import_rms_norm},
    {"_fused_rms_norm", import_rms_norm},
    {"group_norm", import_group_norm},
    {"native_group_norm", import_group_norm},
    {"instance_norm", import_instance_norm},
    {"_weight_norm", import_weight_norm},
    {"_weight_norm_interface", import_weight_norm},
};

}  // namespace

std::span<const Handler> normalization_handlers() { return normalization_table; }

}  // namespace tenon::frontends::torch
