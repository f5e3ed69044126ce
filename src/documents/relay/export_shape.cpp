#include "base/error.h"
#include "documents/relay/export_node.h"
#include "documents/relay/types.h"

#include <algorithm>

namespace tenon::documents::relay {
namespace {

using Exprs = std::vector<ExprId>;
using Named = ExprBuilder::Named;

// Accepts a dynamic attribute whose operand is constant.
Integers dynamic_integers(const ExportNode& node, const char* attr) {
  node.refuse_dynamic();
  if (node.has(attr)) return node.graph().constant_of(node.value(attr))->materialise().integers();
  return node.integers(attr);
}

// Extents that are not numbers: 0 copies the extent at the same position, -1 is inferred.
Exprs export_reshape(const ExportNode& node) {
  const Dims &from = node.type("x").dims, &to = node.result_type().dims;
  // Keeps the graph's own special extents if Relay has them: 0 copies, -1 is inferred.
  if (node.operands().size() == 1 && all_constant(to) && !node.flag("allow_zero")) {
    const Integers own = node.integers("shape");
    const bool is_plain =
        own.size() == to.size() &&
        std::all_of(own.begin(), own.end(), [](std::int64_t word) { return word >= -1; });
    if (is_plain) return {node.build().call("reshape", {node.operand("x")}, {{"newshape", own}})};
  }
  Integers words;
  int left_over = 0;
  for (std::size_t k = 0; k < to.size(); ++k) {
    if (const std::optional<std::int64_t> number = to[k].value()) {
      words.push_back(*number);
    } else if (k < from.size() && from[k] == to[k]) {
      words.push_back(0);
    } else {
      words.push_back(-1);
      ++left_over;
    }
  }
  if (left_over > 1) throw node.unsupported("more than one extent that is known at run time only");
  const bool has_zero =
      std::any_of(to.begin(), to.end(), [](const Dim& dim) { return dim == Dim(0); });
  std::vector<Named> attrs = {{"newshape", words}};
  if (has_zero) attrs.push_back({"allowzero", true});
  return {node.build().call("reshape", {node.operand("x")}, attrs)};
}

Exprs export_transpose(const ExportNode& node) {
  Integers axes = node.integers("perm");
  if (axes.empty()) {
    for (std::size_t k = node.type("x").rank(); k > 0; --k)
      axes.push_back(static_cast<std::int64_t>(k - 1));
  }
  return {node.build().call("transpose", {node.operand("x")}, {{"axes", axes}})};
}

Exprs export_squeeze(const ExportNode& node) {
  const Integers axes = dynamic_integers(node, "axes");
  std::vector<Named> attrs;
  if (!axes.empty()) attrs.push_back({"axis", axes});
  return {node.build().call("squeeze", {node.operand("x")}, attrs)};
}

Exprs unsqueeze(const ExportNode& node) {
  const ExprBuilder& b = node.build();
  Integers axes = dynamic_integers(node, "axes");
  const auto rank = static_cast<std::int64_t>(node.result_type().rank());
  for (std::int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  std::sort(axes.begin(), axes.end());
  bool is_run = !axes.empty();
  for (std::size_t k = 1; k < axes.size(); ++k) is_run = is_run && axes[k] == axes[k - 1] + 1;
  if (is_run) {
    return {
        b.call("expand_dims", {node.operand("x")},
               {{"axis", axes.front()}, {"num_newaxis", static_cast<std::int64_t>(axes.size())}})};
  }
  node.need_group();
  ExprId x = node.operand("x");
  for (const std::int64_t axis : axes) x = b.call("expand_dims", {x}, {{"axis", axis}});
  return {x};
}

Exprs concat_values(const ExportNode& node) {
  const ExprBuilder& b = node.build();
  return {b.call("concatenate", {b.tuple(node.operands())}, {{"axis", node.integer("axis")}})};
}

Exprs split(const ExportNode& node) {
  const ExprBuilder& b = node.build();
  std::int64_t axis = node.integer("axis");
  const auto rank = static_cast<std::int64_t>(node.type("x").rank());
  if (axis < 0) axis += rank;
  std::vector<RelayType> types;
  std::vector<Dim> sizes;
  for (std::size_t k = 0; k < node.node().results.size(); ++k) {
    if (!node.wants(k)) throw node.unsupported("a part that is left out");
    types.push_back(to_relay(node.result_type(k)));
    sizes.push_back(node.result_type(k).dims[static_cast<std::size_t>(axis)]);
  }
  const bool is_even = std::all_of(sizes.begin(), sizes.end(),
                                   [&](const Dim& size) { return size == sizes.front(); });
  Named sections{"indices_or_sections", static_cast<std::int64_t>(sizes.size())};
  if (!is_even) {
    Integers cuts;
    for (const std::int64_t size : node.numbers(sizes))
      cuts.push_back(size + (cuts.empty() ? 0 : cuts.back()));
    cuts.pop_back();
    sections.value = to_attribute(cuts);
  }
  const ExprId call = b.call("split", {node.operand("x")}, {sections, {"axis", axis}});
  b.module().at(call).type = RelayType::tuple(std::move(types));
  Exprs parts;
  for (std::size_t k = 0; k < sizes.size(); ++k) parts.push_back(b.field(call, k));
  return parts;
}

Exprs slice(const ExportNode& node) {
  const Integers starts = dynamic_integers(node, "starts"), ends = dynamic_integers(node, "ends");
  Integers axes = dynamic_integers(node, "axes"), steps = dynamic_integers(node, "steps");
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (axes.empty()) {
    for (std::size_t k = 0; k < starts.size(); ++k) axes.push_back(static_cast<std::int64_t>(k));
  }
  return {
      node.build().call("strided_slice", {node.operand("x")},
                        {{"begin", starts}, {"end", ends}, {"strides", steps}, {"axes", axes}})};
}

Exprs export_pad(const ExportNode& node) {
  const ExprBuilder& b = node.build();
  const std::size_t rank = node.type("x").rank();
  const Integers pads = dynamic_integers(node, "pads");
  Integers axes = dynamic_integers(node, "axes");
  if (axes.empty()) {
    for (std::size_t k = 0; k < rank; ++k) axes.push_back(static_cast<std::int64_t>(k));
  }
  std::vector<Integers> sides(rank, Integers{0, 0});
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const std::int64_t axis = axes[k] < 0 ? axes[k] + static_cast<std::int64_t>(rank) : axes[k];
    sides[static_cast<std::size_t>(axis)] = {pads[k], pads[axes.size() + k]};
    if (pads[k] < 0 || pads[axes.size() + k] < 0) throw node.unsupported("pads that cut");
  }
  AttributeValue width;
  auto& rows = width.value.emplace<AttributeList>();
  for (const Integers& side : sides) rows.push_back(to_attribute(side));
  std::vector<Named> attrs = {{"pad_width", width}};
  const std::string mode = node.text("mode");
  if (mode == "wrap") throw node.unsupported("mode wrap");
  if (mode != "constant") attrs.push_back({"pad_mode", mode});
  // The default pad value of the reference's API is an integer for every type.
  const ExprId value = node.has("value") ? node.operand("value") : b.integer(0);
  return {b.call("nn.pad", {node.operand("x"), value}, attrs)};
}

Exprs expand(const ExportNode& node) {
  return {node.build().call("broadcast_to", {node.operand("x")},
                            {{"shape", node.numbers(node.result_type().dims)}})};
}

}  // namespace

void add_shape_exports(ExportRules& rules) {
  rules["reshape"] = {export_reshape, false};
  rules["transpose"] = {export_transpose, false};
  rules["squeeze"] = {export_squeeze, false};
  rules["unsqueeze"] = {unsqueeze, false};
  rules["concat"] = {concat_values, false};
  rules["split"] = {split, false};
  rules["slice"] = {slice, false};
  rules["pad"] = {export_pad, false};
  rules["expand"] = {expand, false};
  rules["tile"] = {[](const ExportNode& node) -> Exprs {
                     return {node.build().call("tile", {node.operand("x")},
                                               {{"reps", dynamic_integers(node, "repeats")}})};
                   },
                   false};
  rules["shape"] = {
      [](const ExportNode& node) -> Exprs {
        if (node.integer("start") != 0 || node.node().attrs.find("end"))
          throw node.unsupported("part of a shape");
        return {node.build().call("shape_of", {node.operand("x")}, {{"dtype", "int64"}})};
      },
      false};
  rules["size"] = {
      [](const ExportNode& node) -> Exprs {
        return {node.build().call("ndarray_size", {node.operand("x")}, {{"dtype", "int64"}})};
      },
      false};
}

}  // namespace tenon::documents::relay
