#include "base/error.h"
#include "frontends/onnx/op_call.h"
#include "frontends/onnx/window_attrs.h"

namespace tenon::frontends::onnx {
namespace {

std::vector<Attr> pool_attrs(const NodeImport& node) {
  std::vector<Attr> attrs = window_attrs(node);
  attrs.emplace_back("kernel_shape", node.integers("kernel_shape"));
  attrs.emplace_back("ceil_mode", node.integer("ceil_mode", 0) != 0);
  return attrs;
}

void import_max_pool(NodeImport& node) {
  std::vector<Attr> attrs = pool_attrs(node);
  const bool is_column_major = node.integer("storage_order", 0) != 0;
  attrs.emplace_back("index_order", is_column_major ? "column_major" : "row_major");
  node.outputs(node.build.call_all("max_pool", {node.input(0)}, attrs, node.output_names(2)));
}

void import_average_pool(NodeImport& node) {
  std::vector<Attr> attrs = pool_attrs(node);
  attrs.emplace_back("count_include_pad", node.integer("count_include_pad", 0) != 0);
  node.output(node.call("average_pool", {node.input(0)}, attrs));
}

// An integer since opset 2, a float before.
double norm_order(const NodeImport& node) {
  return node.opset() < 2 ? node.real("p", 2) : static_cast<double>(node.integer("p", 2));
}

void import_lp_pool(NodeImport& node) {
  std::vector<Attr> attrs = pool_attrs(node);
  attrs.emplace_back("p", norm_order(node));
  node.output(node.call("lp_pool", {node.input(0)}, attrs));
}

Var over_spatial_axes(NodeImport& node, std::string_view reduction, Var x) {
  const std::optional<std::size_t> rank = node.rank(x);
  if (!rank) node.unsupported("it needs the rank of its input before the model runs");
  if (*rank <= 2) return x;
  Attr::Integers axes;
  for (std::size_t axis = 2; axis < *rank; ++axis) axes.push_back(static_cast<std::int64_t>(axis));
  return node.call(reduction, {x}, {{"axes", axes}});
}

void import_global_average_pool(NodeImport& node) {
  node.output(over_spatial_axes(node, "reduce_mean", node.input(0)));
}

void import_global_max_pool(NodeImport& node) {
  node.output(over_spatial_axes(node, "reduce_max", node.input(0)));
}

void import_global_lp_pool(NodeImport& node) {
  const double p = norm_order(node);
  const Var x = node.input(0);
  if (p == 1 || p == 2) {
    node.output(over_spatial_axes(node, p == 1 ? "reduce_l1" : "reduce_l2", x));
    return;
  }
  const Var powers = node.call("pow", {node.call("abs", {x}), node.build.scalar(p, x)});
  const Var sums = over_spatial_axes(node, "reduce_sum", powers);
  node.output(node.call("pow", {sums, node.build.scalar(1 / p, x)}));
}

void import_max_unpool(NodeImport& node) {
  OpCall call(node, "max_unpool");
  call.operand("x", node.input(0)).operand("indices", node.input(1)).dynamic("output_shape", 2);
  for (Attr& attr : window_attrs(node)) call.attr(std::move(attr));
  node.output(call.attr({"kernel_shape", node.integers("kernel_shape")}).result());
}

void import_col2im(NodeImport& node) {
  OpCall call(node, "col2im");
  call.operand("x", node.input(0)).dynamic("image_shape", 1).dynamic("block_shape", 2);
  for (Attr& attr : window_attrs(node)) call.attr(std::move(attr));
  node.output(call.result());
}

constexpr Handler pooling_table[] = {
    {"AveragePool", import_average_pool},
    {"Col2Im", import_col2im},
    {"GlobalAveragePool", import_global_average_pool},
    {"GlobalLpPool", import_global_lp_pool},
    {"GlobalMaxPool", import_global_max_pool},
    {"LpPool", import_lp_pool},
    {"MaxPool", import_max_pool},
    {"MaxUnpool", import_max_unpool},
};

}  // namespace

std::span<const Handler> pooling_handlers() { return pooling_table; }

}  // namespace tenon::frontends::onnx
