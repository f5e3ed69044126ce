#include "base/error.h"
#include "frontends/onnx/export_node.h"

namespace tenon::onnx {
namespace {

struct ReductionNames {
  const char* op;
  const char* onnx;
  const char* without_axes;  // what is left of it when nothing is folded
};

constexpr ReductionNames reduction_names[] = {
    {"reduce_l1", "ReduceL1", "Abs"},
    {"reduce_l2", "ReduceL2", "Abs"},
    {"reduce_log_sum", "ReduceLogSum", "Log"},
    {"reduce_log_sum_exp", "ReduceLogSumExp", "Identity"},
    {"reduce_max", "ReduceMax", "Identity"},
    {"reduce_mean", "ReduceMean", "Identity"},
    {"reduce_min", "ReduceMin", "Identity"},
    {"reduce_prod", "ReduceProd", "Identity"},
    {"reduce_sum", "ReduceSum", "Identity"},
    {"reduce_sum_square", "ReduceSumSquare", "Mul"},
};

const ReductionNames& names_of(std::string_view op) {
  for (const ReductionNames& names : reduction_names) {
    if (names.op == op) return names;
  }
  TENON_ASSERT(false, "the rule is only listed for reductions");
}

void export_reduce(NodeExport& node) {
  const ReductionNames& names = names_of(node.node.op->name);
  const bool has_dynamic_axes = node.has("axes");
  const std::vector<std::int64_t> axes =
      has_dynamic_axes ? std::vector<std::int64_t>{} : node.integers("axes");
  const bool folds_nothing = !has_dynamic_axes && axes.empty() && node.flag("noop_if_empty");
  const std::string x = node.operand("x");
  if (folds_nothing) {
    const bool is_square = names.without_axes == std::string_view("Mul");
    node.emit(names.without_axes, is_square ? std::vector{x, x} : std::vector{x}, {node.result()});
    return;
  }
  std::vector<OnnxAttr> attrs{{"keepdims", std::int64_t{node.flag("keep_axes")}}};
  const bool is_bool =
      node.operand_type("x").is_tensor() && node.operand_type("x").tensor().dtype == DType::Bool;
  if (is_bool) node.need_opset(20);
  const int input_since = names.onnx == std::string_view("ReduceSum") ? 13 : 18;
  if (has_dynamic_axes) node.need_opset(input_since);
  std::vector<std::string> inputs{x};
  if (node.opset() < input_since) {
    if (!axes.empty()) attrs.push_back({"axes", axes});
  } else if (has_dynamic_axes || !axes.empty()) {
    inputs.push_back(node.integers_input("axes"));
    if (node.flag("noop_if_empty")) attrs.push_back({"noop_with_empty_axes", std::int64_t{1}});
  }
  node.emit(names.onnx, inputs, {node.result()}, attrs);
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

}  // namespace tenon::onnx
