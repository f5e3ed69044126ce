#include "base/error.h"
#include "documents/relay/export_node.h"
#include "documents/relay/types.h"

#include <algorithm>
#include <cmath>

namespace tenon::documents::relay {
namespace {

using Exprs = std::vector<ExprId>;
using Named = ExprBuilder::Named;

Exprs export_batch_norm(const ExportNode& node) {
  const ExprBuilder& b = node.build();
  const ExprId call = b.call("nn.batch_norm", node.operands(),
                             {{"axis", node.integer("axis")}, {"epsilon", node.real("epsilon")}});
  b.module().at(call).type = RelayType::tuple(
      {to_relay(node.result_type()), to_relay(node.type("mean")), to_relay(node.type("variance"))});
  return {b.field(call, 0)};
}

// Relay's operator normalizes with given statistics. Batch statistics, updated running ones, and
// those for gradients are exported as arithmetic.
Exprs batch_norm_training(const ExportNode& node) {
  const ExprBuilder& b = node.build();
  const TensorType& type = node.type("x");
  if (type.dtype != DType::F32 && type.dtype != DType::F64)
    throw node.unsupported(concat("statistics of ", to_string(type.dtype)));
  const auto rank = static_cast<std::int64_t>(type.rank());
  const std::int64_t axis =
      node.integer("axis") < 0 ? node.integer("axis") + rank : node.integer("axis");
  Integers axes, channel(type.rank(), 1);
  for (std::int64_t k = 0; k < rank; ++k) {
    if (k != axis) axes.push_back(k);
  }
  channel[static_cast<std::size_t>(axis)] = -1;
  const auto along = [&](ExprId vector) {
    return b.call("reshape", {vector}, {{"newshape", channel}});
  };
  const auto mean_of = [&](ExprId x) { return b.call("mean", {x}, {{"axis", axes}}); };
  const auto number = [&](double value) { return b.real(value, type.dtype); };
  const ExprId x = node.operand("x"), mean = mean_of(x);
  const ExprId centered = b.subtract(x, along(mean));
  const ExprId variance = mean_of(b.multiply(centered, centered));
  const ExprId inverse =
      b.divide(number(1), b.call("sqrt", {b.add(variance, number(node.real("epsilon")))}));
  const double momentum = node.real("momentum");
  const auto running = [&](ExprId before, ExprId now) {
    return b.add(b.multiply(before, number(momentum)), b.multiply(now, number(1 - momentum)));
  };
  const ExprId scaled =
      b.multiply(b.multiply(centered, along(inverse)), along(node.operand("scale")));
  return {b.add(scaled, along(node.operand("bias"))), running(node.operand("mean"), mean),
          running(node.operand("variance"), variance), mean, inverse};
}

// Relay's operator requires a weight per class and an ignored label.
Exprs export_nll_loss(const ExportNode& node) {
  const ExprBuilder& b = node.build();
  const bool ignores = node.node().attrs.find("ignore_index") != nullptr;
  if (!node.has("weight") || !ignores) node.need_group();
  const TensorType& x = node.type("x");
  const ExprId weight =
      node.has("weight")
          ? node.operand("weight")
          : b.call("ones", {},
                   {{"shape", node.numbers({x.dims[1]})}, {"dtype", to_relay(x).dtype}});
  constexpr std::int64_t no_label = -100;
  const std::int64_t ignored = ignores ? node.integer("ignore_index") : no_label;
  return {b.call("nn.nll_loss", {node.operand("x"), node.operand("target"), weight},
                 {{"reduction", node.text("reduction")}, {"ignore_index", ignored}})};
}

Integers axes_from(const ExportNode& node, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(node.type(0).rank());
  Integers axes;
  for (std::int64_t k = axis < 0 ? axis + rank : axis; k < rank; ++k) axes.push_back(k);
  return axes;
}

ExprId mean_over(const ExprBuilder& b, ExprId x, const Integers& axes) {
  return b.call("mean", {x}, {{"axis", axes}, {"keepdims", true}});
}

Exprs export_layer_norm(const ExportNode& node) {
  const ExprBuilder& b = node.build();
  if (node.wants(1) || node.wants(2)) throw node.unsupported("mean and deviation as results");
  const Integers axes = axes_from(node, node.integer("axis"));
  if (axes.size() == 1 && node.has("bias")) {
    return {b.call("nn.layer_norm", node.operands(),
                   {{"axis", node.integer("axis")}, {"epsilon", node.real("epsilon")}})};
  }
  node.need_group();
  const ExprId x = node.operand("x");
  const ExprId centered = b.subtract(x, mean_over(b, x, axes));
  const ExprId variance = mean_over(b, b.multiply(centered, centered), axes);
  const ExprId deviation =
      b.call("sqrt", {b.add(variance, b.real(node.real("epsilon"), node.type(0).dtype))});
  const ExprId scaled = b.multiply(b.divide(centered, deviation), node.operand("scale"));
  return {node.has("bias") ? b.add(scaled, node.operand("bias")) : scaled};
}

Exprs rms_norm(const ExportNode& node) {
  const ExprBuilder& b = node.build();
  const ExprId x = node.operand("x");
  const ExprId square = mean_over(b, b.multiply(x, x), axes_from(node, node.integer("axis")));
  const ExprId root =
      b.call("sqrt", {b.add(square, b.real(node.real("epsilon"), node.type(0).dtype))});
  return {b.multiply(b.divide(x, root), node.operand("scale"))};
}

Exprs export_lrn(const ExportNode& node) {
  const TensorType& x = node.type("x");
  const auto axis = static_cast<std::int64_t>(x.layout.axis('C').value_or(1));
  return {node.build().call("nn.lrn", {node.operand("x")},
                            {{"size", node.integer("size")},
                             {"axis", axis},
                             {"bias", node.real("bias")},
                             {"alpha", node.real("alpha")},
                             {"beta", node.real("beta")}})};
}

std::vector<Named> reduction_attrs(const ExportNode& node, const char* axes_name = "axes") {
  node.refuse_dynamic();
  Integers axes = node.integers(axes_name);
  if (node.has(axes_name))
    axes = node.graph().constant_of(node.value(axes_name))->materialise().integers();
  std::vector<Named> attrs = {{"keepdims", node.flag("keep_axes")}};
  if (!axes.empty()) {
    attrs.push_back({"axis", axes});
  } else if (node.flag("noop_if_empty")) {
    attrs.push_back({"axis", Integers{}});
  }
  return attrs;
}

void add_reductions(ExportRules& rules) {
  struct Pair {
    const char *tenon, *relay;
  };
  for (const Pair& pair : {Pair{"reduce_sum", "sum"},
                           {"reduce_mean", "mean"},
                           {"reduce_max", "max"},
                           {"reduce_min", "min"},
                           {"reduce_prod", "prod"},
                           {"reduce_log_sum_exp", "logsumexp"}}) {
    rules[pair.tenon] = {
        [op = pair.relay](const ExportNode& node) -> Exprs {
          return {node.build().call(op, {node.operand("x")}, reduction_attrs(node))};
        },
        false};
  }
  // An elementwise function before a reduction, and one after it.
  struct Around {
    const char *tenon, *before, *behind;
  };
  for (const Around& around : {Around{"reduce_l1", "abs", ""},
                               {"reduce_l2", "square", "sqrt"},
                               {"reduce_sum_square", "square", ""},
                               {"reduce_log_sum", "", "log"}}) {
    rules[around.tenon] = {[around](const ExportNode& node) -> Exprs {
                             const ExprBuilder& b = node.build();
                             const std::string before = around.before, behind = around.behind;
                             ExprId x = node.operand("x");
                             if (before == "square") x = b.multiply(x, x);
                             if (before == "abs") x = b.call("abs", {x});
                             x = b.call("sum", {x}, reduction_attrs(node));
                             return {behind.empty() ? x : b.call(behind, {x})};
                           },
                           true};
  }
  for (const bool is_max : {true, false}) {
    rules[is_max ? "arg_max" : "arg_min"] = {
        [is_max](const ExportNode& node) -> Exprs {
          const ExprBuilder& b = node.build();
          const ExprId narrow = b.call(is_max ? "argmax" : "argmin", {node.operand("x")},
                                       {{"axis", Integers{node.integer("axis")}},
                                        {"keepdims", node.flag("keep_axes")},
                                        {"select_last_index", node.flag("select_last")}});
          return {b.call("cast", {narrow}, {{"dtype", "int64"}})};
        },
        true};
  }
}

// softmax(scale * q k^T + mask) v, head by head: batch and heads become one batch.
Exprs attention(const ExportNode& node) {
  const ExprBuilder& b = node.build();
  const TensorType &q = node.type("q"), &k = node.type("k"), &v = node.type("v");
  const bool is_plain = q.rank() == 4 && k.rank() == 4 && v.rank() == 4 && k.dims[1] == q.dims[1] &&
                        !node.wants(1) && !node.has("key_counts") && node.real("softcap") == 0 &&
                        node.integer("left_window") < 0 && node.integer("right_window") < 0;
  if (!is_plain) throw node.unsupported("grouped or capped heads, windows, scores or counts");
  const auto flat = [&](ExprId x, const TensorType& type) {
    const Integers dims = node.numbers(type.dims);
    return b.call("reshape", {x}, {{"newshape", Integers{dims[0] * dims[1], dims[2], dims[3]}}});
  };
  const Integers q_dims = node.numbers(q.dims), k_dims = node.numbers(k.dims),
                 v_dims = node.numbers(v.dims);
  double scale = 1 / std::sqrt(static_cast<double>(q_dims[3]));
  if (node.node().attrs.find("scale")) scale = node.real("scale");
  ExprId scores =
      b.call("nn.batch_matmul", {flat(node.operand("q"), q), flat(node.operand("k"), k)},
             {{"transpose_b", true}});
  scores = b.multiply(scores, b.real(scale, q.dtype));
  scores = b.call("reshape", {scores},
                  {{"newshape", Integers{q_dims[0], q_dims[1], q_dims[2], k_dims[2]}}});
  const double least = -1e9;
  if (node.has("mask")) {
    const bool keeps = node.type("mask").dtype == DType::Bool;
    scores = keeps ? b.call("where", {node.operand("mask"), scores, b.real(least, q.dtype)})
                   : b.add(scores, node.operand("mask"));
  }
  if (node.flag("causal")) {
    const ExprId ones =
        b.call("ones", {}, {{"shape", Integers{q_dims[2], k_dims[2]}}, {"dtype", "bool"}});
    const ExprId sees =
        b.call("trilu", {ones, b.integer(node.integer("causal_offset"))}, {{"upper", false}});
    scores = b.call("where", {sees, scores, b.real(least, q.dtype)});
  }
  const ExprId weights = b.call("nn.softmax", {scores});
  const ExprId flat_weights = b.call(
      "reshape", {weights}, {{"newshape", Integers{q_dims[0] * q_dims[1], q_dims[2], k_dims[2]}}});
  const ExprId heads = b.call("nn.batch_matmul", {flat_weights, flat(node.operand("v"), v)});
  return {b.call("reshape", {heads},
                 {{"newshape", Integers{q_dims[0], q_dims[1], q_dims[2], v_dims[3]}}})};
}

Exprs dropout(const ExportNode& node) {
  const ExprBuilder& b = node.build();
  const Constant* training =
      node.has("training") ? node.graph().constant_of(node.value("training")) : nullptr;
  if (node.has("training") && (training == nullptr || training->materialise().integer_at(0) != 0)) {
    throw node.unsupported("while training");
  }
  if (node.wants(1) && !node.graph().readers(node.node().results[1]).empty())
    throw node.unsupported("its mask");
  const Constant* ratio =
      node.has("ratio") ? node.graph().constant_of(node.value("ratio")) : nullptr;
  const double rate = ratio && ratio->size() == 1 ? ratio->materialise().real_at(0) : 0.5;
  const ExprId call = b.call("nn.dropout", {node.operand("x")}, {{"rate", rate}});
  b.module().at(call).type =
      RelayType::tuple({to_relay(node.result_type()), to_relay(node.result_type())});
  return {b.field(call, 0)};
}

}  // namespace

void add_normalization_exports(ExportRules& rules) {
  rules["batch_norm"] = {export_batch_norm, false};
  rules["batch_norm_training"] = {batch_norm_training, true};
  rules["nll_loss"] = {export_nll_loss, false};
  rules["layer_norm"] = {export_layer_norm, false};
  rules["rms_norm"] = {rms_norm, true};
  rules["attention"] = {attention, true};
  rules["dropout"] = {dropout, false};
  rules["lrn"] = {export_lrn, false};
  add_reductions(rules);
}

}  // namespace tenon::documents::relay
