#include "base/error.h"
#include "frontends/onnx/export_node.h"
#include "frontends/onnx/plain_ops.h"

#include <algorithm>

namespace tenon::frontends::onnx {
namespace {

// The elementwise part of a reduction over zero axes.
std::string without_axes(std::string_view op) {
  if (op == "reduce_l1" || op == "reduce_l2") return "Abs";
  if (op == "reduce_log_sum") return "Log";
  return op == "reduce_sum_square" ? "Mul" : "Identity";
}

void export_reduce(NodeExport& node) {
  const PlainOp& row = *std::ranges::find(plain_ops(), node.node.op->name, &PlainOp::op);
  const bool has_dynamic_axes = node.has("axes");
  const std::vector<std::int64_t> axes =
      has_dynamic_axes ? std::vector<std::int64_t>{} : node.integers("axes");
  const bool folds_nothing = !has_dynamic_axes && axes.empty() && node.flag("noop_if_empty");
  const std::string x = node.operand("x");
  if (folds_nothing) {
    const std::string left = without_axes(row.op);
    node.emit(left, left == "Mul" ? std::vector{x, x} : std::vector{x}, {node.result()});
    return;
  }
  std::vector<OnnxAttr> attrs{{"keepdims", std::int64_t{node.flag("keep_axes")}}};
  const bool is_bool =
      node.operand_type("x").is_tensor() && node.operand_type("x").tensor().dtype == DType::Bool;
  if (is_bool) node.need_opset(20);
  if (has_dynamic_axes) node.need_opset(row.since);
  std::vector<std::string> inputs{x};
  if (node.opset() < row.since) {
    if (!axes.empty()) attrs.push_back({"axes", axes});
  } else if (has_dynamic_axes || !axes.empty()) {
    inputs.push_back(node.integers_input("axes"));
    if (node.flag("noop_if_empty")) attrs.push_back({"noop_with_empty_axes", std::int64_t{1}});
  }
  node.emit(std::string(row.op_type), inputs, {node.result()}, attrs);
}

constexpr ExportRule reduction_exports[] = {
    {"reduce_l1", export_reduce},      {"reduce_l2", export_reduce},
    {"reduce_log_sum", export_reduce}, {"reduce_log_sum_exp", export_reduce},
    {"reduce_max", export_reduce},     {"reduce_mean", export_reduce},
    {"reduce_min", export_reduce},     {"reduce_prod", export_reduce},
    {"reduce_sum", export_reduce},     {"reduce_sum_square", export_reduce},
};

}  // namespace

std::span<const ExportRule> reduction_export_rules() { return reduction_exports; }

}  // namespace tenon::frontends::onnx
