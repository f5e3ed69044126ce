#include "base/error.h"
#include "documents/relay/export_node.h"
#include "documents/relay/types.h"

namespace tenon::documents::relay {
namespace {

using Exprs = std::vector<ExprId>;

std::int64_t dynamic_integer(const ExportNode& node, const char* attr) {
  node.refuse_dynamic();
  if (node.has(attr))
    return node.graph().constant_of(node.value(attr))->materialise().integer_at(0);
  return node.integer(attr);
}

Exprs export_cumulate(const ExportNode& node) {
  if (node.flag("reverse")) throw node.unsupported("from the end");
  return {node.build().call(
      node.node().op->name, {node.operand("x")},
      {{"axis", dynamic_integer(node, "axis")}, {"exclusive", node.flag("exclusive")}})};
}

Exprs export_top_k(const ExportNode& node) {
  const ExprBuilder& b = node.build();
  const ExprId call = b.call("topk", {node.operand("x")},
                             {{"k", dynamic_integer(node, "k")},
                              {"axis", node.integer("axis")},
                              {"is_ascend", !node.flag("largest")},
                              {"dtype", "int64"}});
  TensorType indices = node.result_type(node.wants(0) ? 0 : 1), values = indices;
  indices.dtype = DType::I64;
  values.dtype = node.type("x").dtype;
  b.module().at(call).type = RelayType::tuple({to_relay(values), to_relay(indices)});
  return {b.field(call, 0), b.field(call, 1)};
}

Exprs export_gather_nd(const ExportNode& node) {
  const ExprBuilder& b = node.build();
  const auto rank = static_cast<std::int64_t>(node.type("indices").rank());
  Integers axes{rank - 1};
  for (std::int64_t k = 0; k + 1 < rank; ++k) axes.push_back(k);
  const ExprId first = b.call("transpose", {node.operand("indices")}, {{"axes", axes}});
  return {b.call("gather_nd", {node.operand("x"), first},
                 {{"batch_dims", node.integer("batch_dims")}})};
}

Exprs scatter_elements(const ExportNode& node) {
  const std::string reduction = node.text("reduction");
  return {
      node.build().call("scatter_elements", node.operands(),
                        {{"axis", node.integer("axis")},
                         {"reduction", reduction == "none" ? std::string("update") : reduction}})};
}

Exprs export_one_hot(const ExportNode& node) {
  const ExprBuilder& b = node.build();
  const auto pick = [&](std::int64_t index) {
    const ExprId part =
        b.call("take", {node.operand("values"), b.integer(index)}, {{"axis", std::int64_t{0}}});
    return part;
  };
  return {b.call("one_hot", {node.operand("indices"), pick(1), pick(0)},
                 {{"depth", dynamic_integer(node, "depth")},
                  {"axis", node.integer("axis")},
                  {"dtype", dtype_name(node.result_type().dtype)}})};
}

}  // namespace

void add_selection_exports(ExportRules& rules) {
  rules["gather_nd"] = {export_gather_nd, true};
  rules["scatter_elements"] = {scatter_elements, false};
  rules["one_hot"] = {export_one_hot, true};
  rules["cumsum"] = {export_cumulate, false};
  rules["cumprod"] = {export_cumulate, false};
  rules["top_k"] = {export_top_k, false};
  rules["range"] = {[](const ExportNode& node) -> Exprs {
                      return {node.build().call("arange", node.operands(),
                                                {{"dtype", dtype_name(node.result_type().dtype)}})};
                    },
                    false};
  rules["trilu"] = {
      [](const ExportNode& node) -> Exprs {
        const ExprBuilder& b = node.build();
        return {b.call("trilu", {node.operand("x"), b.integer(dynamic_integer(node, "k"))},
                       {{"upper", node.flag("upper")}})};
      },
      false};
}

}  // namespace tenon::documents::relay
