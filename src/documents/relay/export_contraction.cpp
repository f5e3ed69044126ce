#include "base/error.h"
#include "documents/relay/export_node.h"
#include "documents/relay/types.h"
#include "documents/relay/window.h"
#include "documents/relay/window_export.h"
#include "frontends/node_attrs.h"

#include <algorithm>

namespace tenon::documents::relay {
namespace {

using Exprs = std::vector<ExprId>;
using Named = ExprBuilder::Named;

Exprs convolution(const ExportNode& node) {
  const ExprBuilder& b = node.build();
  const bool is_transposed = node.node().op->name == "conv_transpose";
  const TensorType &x = node.type("x"), &w = node.type("w"), &y = node.result_type();
  const ImageText image = image_text(node, x);
  const std::string weight_layout =
      w.layout.is_empty() ? "OI" + spatial_letters(image.count) : w.layout.text();
  const Layout weights(weight_layout);
  const auto extent = [&](char letter) {
    const auto axis = weights.axis(letter);
    if (!axis) throw node.unsupported("weights without an axis");
    return node.numbers({w.dims[*axis]}).front() * weights.block(letter);
  };
  const std::int64_t groups = node.integer("groups");
  Integers kernel;
  for (const char letter : spatial_letters(image.count)) kernel.push_back(extent(letter));
  const std::int64_t channels = is_transposed ? extent('I') * groups : extent('O');
  const WindowText window = window_text(node, image, kernel);
  std::vector<Named> attrs = {{"strides", window.strides},    {"padding", window.pads},
                              {"dilation", window.dilations}, {"groups", groups},
                              {"channels", channels},         {"kernel_size", kernel},
                              {"data_layout", image.layout},  {"kernel_layout", weight_layout}};
  if (is_transposed) attrs.push_back({"output_padding", window.output_padding});
  add_out_layout(image, y, attrs);
  if (const std::optional<DType> out = is_transposed ? std::nullopt : node.dtype("out_dtype")) {
    attrs.push_back({"out_dtype", dtype_name(*out)});
  }
  const ExprId conv = b.call(concat("nn.conv", image.count, "d", is_transposed ? "_transpose" : ""),
                             {node.operand("x"), node.operand("w")}, attrs);
  if (!node.has("b")) return {conv};
  b.module().at(conv).type = to_relay(y);
  const auto axis = static_cast<std::int64_t>(y.layout.axis('C').value_or(1));
  if (y.layout.block('C') != 1) throw node.unsupported("a bias on channels in blocks");
  return {b.call("nn.bias_add", {conv, node.operand("b")}, {{"axis", axis}})};
}

// Returns the operand of a node that swaps the last two axes and has a single reader.
ValueId before_swap(const ExportNode& node, ValueId value) {
  const Graph& graph = node.graph();
  const NodeId producer = graph.value(value).producer;
  if (!producer || graph.readers(value).size() != 1 || graph.is_output(value)) return {};
  const Node& maker = graph.node(producer);
  if (maker.op->name != "transpose") return {};
  const std::size_t rank = graph.value(value).type.tensor().rank();
  const Dims* dims = frontends::attr_of<Dims>(maker, "perm");
  if (dims == nullptr || dims->empty()) return rank == 2 ? maker.operands[0] : ValueId();
  Dims swapped;
  for (std::size_t k = 0; k < rank; ++k) swapped.emplace_back(static_cast<std::int64_t>(k));
  std::swap(swapped[rank - 1], swapped[rank - 2]);
  return *dims == swapped ? maker.operands[0] : ValueId();
}

// Returns the operand of the swap in its exported expression.
ExprId swapped_argument(const ExportNode& node, ExprId swapped) {
  return node.build().module().at(swapped).parts[1];
}

// Matrices with leading axes: reshaped to one batch axis, multiplied, reshaped back.
Exprs reshaped_product(const ExportNode& node) {
  const ExprBuilder& b = node.build();
  const TensorType &y = node.result_type(), &a = node.type("a"), &w = node.type("b");
  if (a.rank() < 2 || w.rank() < 2) {
    Integers a_shape = node.numbers(a.dims), b_shape = node.numbers(w.dims);
    if (a.rank() > 2 || w.rank() > 2) throw node.unsupported("a vector times matrices");
    if (a.rank() == 1) a_shape.insert(a_shape.begin(), 1);
    if (w.rank() == 1) b_shape.push_back(1);
    const ExprId row = b.call("reshape", {node.operand("a")}, {{"newshape", a_shape}});
    const ExprId column = b.call("reshape", {node.operand("b")}, {{"newshape", b_shape}});
    const ExprId product = b.call("nn.matmul", {row, column}, {{"units", b_shape.back()}});
    return {b.call("reshape", {product}, {{"newshape", node.numbers(y.dims)}})};
  }
  const Integers result = node.numbers(y.dims);
  const auto flat = [&](ExprId value, const TensorType& type) {
    const Integers dims = node.numbers(type.dims);
    Integers wide(result.begin(), result.end() - 2);
    wide.insert(wide.end(), dims.end() - 2, dims.end());
    if (wide != dims) value = b.call("broadcast_to", {value}, {{"shape", wide}});
    if (wide.size() == 3) return value;
    return b.call("reshape", {value},
                  {{"newshape", Integers{-1, dims[dims.size() - 2], dims.back()}}});
  };
  std::vector<Named> attrs;
  if (const std::optional<DType> out = node.dtype("out_dtype"))
    attrs.push_back({"out_dtype", dtype_name(*out)});
  const ExprId product =
      b.call("nn.batch_matmul", {flat(node.operand("a"), a), flat(node.operand("b"), w)}, attrs);
  if (result.size() == 3) return {product};
  return {b.call("reshape", {product}, {{"newshape", result}})};
}

Exprs matmul(const ExportNode& node) {
  const ExprBuilder& b = node.build();
  const TensorType &a = node.type("a"), &w = node.type("b");
  std::vector<Named> attrs;
  if (const std::optional<DType> out = node.dtype("out_dtype"))
    attrs.push_back({"out_dtype", dtype_name(*out)});
  // The swap must be exported as a transpose: it may be a native node.
  const RelayExpr& right_hand = b.module().at(node.operand("b"));
  const bool has_swap = before_swap(node, node.value("b")).is_valid() &&
                        right_hand.kind == RelayExpr::Kind::Call && right_hand.parts.size() == 2 &&
                        b.module().at(right_hand.parts[0]).name == "transpose";
  if (a.rank() >= 2 && w.rank() == 2) {
    const Dim& units = w.dims[1];
    attrs.insert(attrs.begin(), {"units", units.is_constant() ? to_attribute(units.constant())
                                                              : AttributeValue{}});
    if (has_swap)
      return {b.call("nn.dense", {node.operand("a"), swapped_argument(node, node.operand("b"))},
                     attrs)};
    return {b.call("nn.matmul", {node.operand("a"), node.operand("b")}, attrs)};
  }
  if (a.rank() == 3 && w.rank() == 3 && a.dims[0] == w.dims[0]) {
    ExprId right = node.operand("b");
    if (has_swap) {
      right = swapped_argument(node, right);
      attrs.push_back({"transpose_b", true});
    }
    return {b.call("nn.batch_matmul", {node.operand("a"), right}, attrs)};
  }
  node.need_group();
  return reshaped_product(node);
}

}  // namespace

void add_contraction_exports(ExportRules& rules) {
  rules["conv"] = {convolution, false};
  rules["conv_transpose"] = {convolution, false};
  rules["matmul"] = {matmul, false};
  rules["einsum"] = {[](const ExportNode& node) -> Exprs {
                       const ExprBuilder& b = node.build();
                       return {b.call("einsum", {b.tuple(node.operands())},
                                      {{"equation", node.text("equation")}})};
                     },
                     false};
}

}  // namespace tenon::documents::relay
