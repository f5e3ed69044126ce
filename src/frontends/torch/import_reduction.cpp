#include "frontends/torch/import_node.h"
#include "ops/definition/var_ops.h"

#include <cmath>
#include <limits>
#include <unordered_map>

namespace tenon::frontends::torch {
namespace {

struct Axes {
  std::vector<std::int64_t> list;
  bool keeps;
};

// The axes that a reduction drops: those named, or all.
Axes axes_of(NodeImport& n, Var x) { return {n.axes("dim", n.rank(x)), n.flag("keepdim")}; }

Var reduced(NodeImport& n, std::string_view op, Var x, const Axes& axes) {
  if (axes.list.empty()) return x;
  return n.call(op, {x}, {{"axes", as_dims(axes.list)}, {"keep_axes", axes.keeps}});
}

void import_sum(NodeImport& n) {
  static const std::unordered_map<std::string_view, std::string_view> names = {
      {"sum", "reduce_sum"}, {"mean", "reduce_mean"}, {"prod", "reduce_prod"}};
  const Var x = cast_to(n.first(), n.result_dtype());
  n.result(reduced(n, names.at(n.op), x, axes_of(n, x)));
}

void import_extreme(NodeImport& n) {
  const Var x = n.first();
  if (n.has("other")) {  // Of two tensors.
    const DType dtype = n.result_dtype();
    return n.result(n.call(n.op == "max" ? "maximum" : "minimum",
                           {n.operand("self", dtype), n.operand("other", dtype)}));
  }
  const bool is_max = n.op == "max" || n.op == "amax";
  const Axes axes = axes_of(n, x);
  const Var best = reduced(n, is_max ? "reduce_max" : "reduce_min", x, axes);
  if (n.result_count() < 2) return n.result(best);
  if (n.rank(x) == 0) return n.results({x, n.number(0, DType::I64)});
  const Var position = n.call(is_max ? "arg_max" : "arg_min", {x},
                              {{"axis", Dim(axes.list.front())}, {"keep_axes", axes.keeps}});
  n.results({best, position});
}

void import_position(NodeImport& n) {
  Var x = n.first();
  Axes axes = axes_of(n, x);
  if (n.rank(x) == 0) return n.result(n.number(0, DType::I64));
  if (!n.has("dim")) {  // A position in the flattened tensor.
    x = reshape_to(x, {product(n.dims(x))});
    axes = {{0}, false};
  }
  n.result(n.call(n.op == "argmax" ? "arg_max" : "arg_min", {x},
                  {{"axis", Dim(axes.list.front())}, {"keep_axes", axes.keeps}}));
}

void import_truth(NodeImport& n) {
  const Var x = cast_to(cast_to(n.first(), DType::Bool), DType::I32);
  n.result(cast_to(reduced(n, n.op == "any" ? "reduce_max" : "reduce_min", x, axes_of(n, x)),
                   DType::Bool));
}

// Variance over axes, with `correction` subtracted from the number of elements.
Var variance(NodeImport& n, Var x, const Axes& axes, double correction) {
  const Var mean = reduced(n, "reduce_mean", x, {axes.list, true});
  const Var offset = x - mean;
  const Var squares = offset * offset;
  if (correction == 0) return reduced(n, "reduce_mean", squares, axes);
  Dim count = 1;
  for (const std::int64_t axis : axes.list)
    count = count * n.dims(x)[static_cast<std::size_t>(axis)];
  const Var divisor = cast_to(n.number_of(count), n.dtype(x)) - correction;
  return reduced(n, "reduce_sum", squares, axes) /
         n.call("maximum", {divisor, n.number(0, n.dtype(x))});
}
void import_variance(NodeImport& n) {
  const Var x = n.first();
  const Axes axes = axes_of(n, x);
  const double correction = n.real("correction", n.flag("unbiased", true) ? 1 : 0);
  Var spread = variance(n, x, axes, correction);
  const bool is_root = n.op.starts_with("std");
  if (is_root) spread = n.call("sqrt", {spread});
  if (!n.op.ends_with("_mean")) return n.result(spread);
  n.results({spread, reduced(n, "reduce_mean", x, axes)});
}

void import_norm(NodeImport& n) {
  const Var x = cast_to(n.first(), n.result_dtype());
  const Axes axes = axes_of(n, x);
  const double order = n.real(n.op == "linalg_vector_norm" ? "ord" : "p", 2);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Var magnitude = n.call("abs", {x});
  if (order == 2) return n.result(reduced(n, "reduce_l2", x, axes));
  if (order == 1) return n.result(reduced(n, "reduce_l1", x, axes));
  if (order == kInfinity) return n.result(reduced(n, "reduce_max", magnitude, axes));
  if (order == -kInfinity) return n.result(reduced(n, "reduce_min", magnitude, axes));
  if (order == 0) {
    const Var counts = cast_to(cast_to(x, DType::Bool), n.dtype(x));
    return n.result(reduced(n, "reduce_sum", counts, axes));
  }
  const auto power = [&](Var base, double exponent) {
    return n.call("pow", {base, n.number(exponent, n.dtype(x))});
  };
  n.result(power(reduced(n, "reduce_sum", power(magnitude, order), axes), 1 / order));
}

void import_logsumexp(NodeImport& n) {
  const Var x = cast_to(n.first(), n.result_dtype());
  n.result(reduced(n, "reduce_log_sum_exp", x, axes_of(n, x)));
}

void import_softmax(NodeImport& n) {
  const bool is_log = n.op.find("log_softmax") != std::string_view::npos;
  const Var x = cast_to(n.first(), n.result_dtype());
  const std::size_t rank = n.rank(x);
  if (rank == 0) return n.result(n.number(is_log ? 0 : 1, n.dtype(x)));
  const auto axis = static_cast<std::int64_t>(n.axis("dim", rank));
  const Var y = n.call(is_log ? "log_softmax" : "softmax", {x}, {{"axis", Dim(axis)}});
  if (n.op != "_safe_softmax") return n.result(y);
  // Rows that are hidden as a whole are zeros.
  const double hidden = -std::numeric_limits<double>::infinity();
  const Var best = n.call("reduce_max", {x}, {{"axes", Dims{axis}}});
  const Var is_hidden = n.call("equal", {best, n.number(hidden, n.dtype(x))});
  n.result(n.call("where", {is_hidden, n.number(0, n.dtype(x)), y}));
}

void import_running(NodeImport& n) {
  const Var x = cast_to(n.first(), n.result_dtype());
  if (n.rank(x) == 0) return n.result(x);
  n.result(n.call(n.op, {x}, {{"axis", Dim(static_cast<std::int64_t>(n.axis("dim", n.rank(x))))}}));
}

void import_top(NodeImport& n) {
  const Var x = n.first();
  const std::size_t axis = n.axis("dim", n.rank(x), -1);
  const bool is_sort = n.op != "topk";
  const Dim count = is_sort ? n.dims(x)[axis] : n.extent("k");
  const bool is_largest = is_sort ? n.flag("descending") : n.flag("largest", true);
  const std::vector<Var> made = n.call_all("top_k", {x},
                                           {{"k", count},
                                            {"axis", Dim(static_cast<std::int64_t>(axis))},
                                            {"largest", is_largest},
                                            {"sorted", true}},
                                           2);
  if (n.op == "argsort") return n.result(made[1]);
  n.results(made);
}

// `reduction` of a loss: 0 keeps the elements, 1 takes the mean, 2 the sum.
Var reduced_loss(NodeImport& n, Var loss) {
  const std::int64_t reduction = n.integer("reduction", 1);
  if (reduction == 0) return loss;
  std::vector<std::int64_t> all(n.rank(loss));
  for (std::size_t k = 0; k < all.size(); ++k) all[k] = static_cast<std::int64_t>(k);
  return reduced(n, reduction == 1 ? "reduce_mean" : "reduce_sum", loss, {all, false});
}
void import_distance(NodeImport& n) {
  const DType dtype = n.result_dtype();
  const Var offset = n.operand("self", dtype) - n.operand("target", dtype);
  n.result(reduced_loss(n, n.op == "mse_loss" ? offset * offset : n.call("abs", {offset})));
}
void import_cross_entropy(NodeImport& n) {
  Var x = n.tensor("self"), target = n.tensor("target");
  if (is_float(n.dtype(target)) || n.real("label_smoothing", 0) != 0)
    n.unsupported("targets that are probabilities");
  const bool is_loss = n.op == "cross_entropy_loss";
  const std::size_t rank = n.rank(x);
  if (rank == 1) {
    x = reshape_to(x, {1, n.dims(x).at(0)});
    target = reshape_to(target, {1});
  }
  if (is_loss) x = n.call("log_softmax", {x}, {{"axis", Dim(1)}});
  static constexpr const char* kReductions[] = {"none", "mean", "sum"};
  const auto reduction = static_cast<std::size_t>(n.integer("reduction", 1));
  if (reduction > 2) n.unsupported("its reduction is not known");
  Var loss = n.call("nll_loss", {x, target, n.tensor_or_none("weight")},
                    {{"reduction", word(kReductions[reduction])},
                     {"ignore_index", Dim(n.integer("ignore_index", -100))}});
  if (rank == 1 && reduction == 0) loss = reshape_to(loss, {});
  n.result(loss);
}

void import_count(NodeImport& n) {
  const Var x = cast_to(cast_to(n.first(), DType::Bool), DType::I64);
  n.result(reduced(n, "reduce_sum", x, axes_of(n, x)));
}

// Number of elements in each of equal intervals; the last includes its upper bound.
void import_histogram(NodeImport& n) {
  const double low = n.real("min", 0), high = n.real("max", 0);
  if (low == high) n.unsupported("bounds that depend on data");
  const std::int64_t count = n.integer("bins", 100);
  constexpr std::int64_t kMaxBins = 1 << 16;
  if (count < 1 || count > kMaxBins) n.unsupported("its intervals are too many");
  const Var x = reshape_to(cast_to(n.first(), DType::F32), {product(n.dims(n.first())), 1});
  const auto compared = [&](std::string_view op, double bound) {
    return n.call(op, {x, n.number(bound, DType::F32)});
  };
  const Var position = n.call("floor", {(x - low) * (static_cast<double>(count) / (high - low))});
  const Var last = n.number(static_cast<double>(count - 1), DType::F32);
  const Var bin = cast_to(n.call("minimum", {position, last}), DType::I64);
  const Var is_inside =
      n.call("logical_and", {compared("greater_equal", low), compared("less_equal", high)});
  std::vector<std::int64_t> bins(static_cast<std::size_t>(count));
  for (std::size_t k = 0; k < bins.size(); ++k) bins[k] = static_cast<std::int64_t>(k);
  const Var hits =
      n.call("logical_and", {n.call("equal", {bin, n.build.integers(bins)}), is_inside});
  n.result(n.call("reduce_sum", {cast_to(hits, n.result_dtype())},
                  {{"axes", Dims{0}}, {"keep_axes", false}}));
}

constexpr Handler reduction_table[] = {
    {"sum", import_sum},
    {"mean", import_sum},
    {"prod", import_sum},
    {"max", import_extreme},
    {"min", import_extreme},
    {"amax", import_extreme},
    {"amin", import_extreme},
    {"argmax", import_position},
    {"argmin", import_position},
    {"any", import_truth},
    {"all", import_truth},
    {"var", import_variance},
    {"std", import_variance},
    {"var_mean", import_variance},
    {"std_mean", import_variance},
    {"norm", import_norm},
    {"linalg_vector_norm", import_norm},
    {"logsumexp", import_logsumexp},
    {"softmax", import_softmax},
    {"_softmax", import_softmax},
    {"_safe_softmax", import_softmax},
    {"log_softmax", import_softmax},
    {"_log_softmax", import_softmax},
    {"cumsum", import_running},
    {"cumprod", import_running},
    {"topk", import_top},
    {"sort", import_top},
    {"argsort", import_top},
    {"mse_loss", import_distance},
    {"l1_loss", import_distance},
    {"cross_entropy_loss", import_cross_entropy},
    {"nll_loss", import_cross_entropy},
    {"nll_loss_nd", import_cross_entropy},
    {"nll_loss_forward", import_cross_entropy},
    {"count_nonzero", import_count},
    {"histc", import_histogram},
};

}  // namespace

std::span<const Handler> reduction_handlers() { return reduction_table; }

}  // namespace tenon::frontends::torch
