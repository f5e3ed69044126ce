#include "passes/recognise/causal_mask.h"

#include "passes/rewrite/facts.h"

#include <algorithm>

namespace tenon::passes::recognition {
namespace {

constexpr int kMaxMaskSteps = 8;
constexpr std::int64_t kMaxElements = std::int64_t{1} << 22;

// Returns whether the node is a view that keeps the last two axes.
bool keeps_matrix(const Graph& graph, const Node& node) {
  const std::string& op = node.op->name;
  if (op == "identity") return true;
  if (op != "reshape" && op != "unsqueeze" && op != "squeeze" && op != "expand") return false;
  const Type &from = graph.value(node.operands.front()).type,
             &to = graph.value(node.results.front()).type;
  if (!from.is_tensor() || !to.is_tensor()) return false;
  const Dims &a = from.tensor().dims, &b = to.tensor().dims;
  return a.size() >= 2 && b.size() >= 2 && a.back() == b.back() &&
         a[a.size() - 2] == b[b.size() - 2];
}

// Returns whether the node converts numbers to booleans: a cast, or a comparison with 0 or 1.
bool is_truth_value(const Graph& graph, const Node& node) {
  if (node.op->name != "cast") return false;
  const Type& to = graph.value(node.results.front()).type;
  return to.is_tensor() && to.tensor().dtype == DType::Bool;
}

MaskFacts facts_of_constant(const Constant& constant, bool is_inverted) {
  const Shape& shape = constant.shape();
  if (shape.size() < 2 || constant.size() > kMaxElements || constant.size() == 0) return {};
  const std::int64_t rows = shape[shape.size() - 2], columns = shape.back();
  if (rows * columns != constant.size() || is_complex(constant.dtype())) return {};
  if (constant.dtype() == DType::String) return {};
  const Tensor bools = constant.materialise().converted(DType::Bool);
  const std::span<const std::uint8_t> shown = bools.as<std::uint8_t>();
  MaskFacts facts;
  facts.has_full_rows = true;
  std::optional<std::int64_t> offset;
  bool is_causal = true;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto begin = shown.begin() + row * columns, end = begin + columns;
    const auto first_hidden = std::find(begin, end, is_inverted ? 1 : 0);
    const bool is_prefix = std::find(first_hidden, end, is_inverted ? 0 : 1) == end;
    const std::int64_t count = first_hidden - begin;
    facts.has_full_rows &= count > 0 || !is_prefix;
    // A full row does not determine the offset.
    if (count < columns || row == rows - 1) {
      if (!offset) offset = count - 1 - row;
      is_causal &= is_prefix && count == std::min(columns, row + 1 + *offset);
    } else {
      is_causal &= !offset || row + 1 + *offset >= columns;
    }
  }
  // Rows before the first masked one must be full according to the offset.
  is_causal &= offset && *offset >= 0 && *offset < columns;
  for (std::int64_t row = 0; is_causal && row < rows; ++row) {
    const auto begin = shown.begin() + row * columns;
    const std::int64_t count = std::min(columns, row + 1 + *offset);
    is_causal =
        std::all_of(begin, begin + count, [&](std::uint8_t x) { return (x != 0) != is_inverted; });
  }
  if (is_causal) facts.causal_offset = *offset;
  return facts;
}

// Returns whether the node is `trilu` of a square of ones: the lower triangle, or with
// `is_inverted` the upper one.
bool is_triangle(const Graph& graph, const Node& node, bool is_inverted) {
  if (node.op->name != "trilu" || node.operands.size() != 1) return false;
  const auto ones = rewrite::uniform_value(graph, node.operands.front());
  const AttrValue* upper = node.attrs.find("upper");
  const AttrValue* k = node.attrs.find("k");
  const bool is_upper = !upper || std::get<bool>(*upper);
  const Dim diagonal = k ? std::get<Dim>(*k) : Dim(0);
  return ones == 1.0 && is_upper == is_inverted && diagonal == Dim(is_inverted ? 1 : 0);
}

// Returns the shift of the diagonal by a slice of the last two axes that starts at the first
// column.
std::optional<Dim> offset_of_slice(const Graph& graph, const Node& slice) {
  const Type& type = graph.value(slice.operands.front()).type;
  const AttrValue *starts = slice.attrs.find("starts"), *axes = slice.attrs.find("axes");
  if (!type.is_tensor() || !starts || slice.attrs.find("steps") || slice.operands.size() != 1)
    return {};
  const Dims& from = std::get<Dims>(*starts);
  Dims places;
  if (axes) {
    places = std::get<Dims>(*axes);
  } else {
    for (std::size_t k = 0; k < from.size(); ++k) places.emplace_back(static_cast<std::int64_t>(k));
  }
  const auto counted = rewrite::counted_axes(places, type.tensor().rank());
  if (!counted || counted->size() != from.size()) return {};
  const auto rank = static_cast<std::int64_t>(type.tensor().rank());
  Dim offset = 0;
  for (std::size_t k = 0; k < from.size(); ++k) {
    if (from[k].range().lo < 0) return {};
    if ((*counted)[k] == rank - 2) offset = from[k];
    if ((*counted)[k] == rank - 1 && !(from[k] == Dim(0))) return {};
    if ((*counted)[k] < rank - 2 &&
        !(type.tensor().dims[static_cast<std::size_t>((*counted)[k])] == Dim(1))) {
      return {};
    }
  }
  return offset;
}

}  // namespace

MaskFacts facts_of_mask(const Graph& graph, ValueId mask, bool is_inverted) {
  Dim offset = 0;
  bool is_whole = true;
  for (int step = 0; step < kMaxMaskSteps; ++step) {
    if (const Constant* constant = graph.constant_of(mask)) {
      MaskFacts facts = facts_of_constant(*constant, is_inverted);
      if (facts.causal_offset) facts.causal_offset = *facts.causal_offset + offset;
      facts.has_full_rows &= is_whole || facts.causal_offset.has_value();
      return facts;
    }
    const NodeId id = graph.value(mask).producer;
    if (!id) return {};
    const Node& node = graph.node(id);
    if (is_triangle(graph, node, is_inverted)) return {offset, true};
    if (node.op->name == "slice") {
      const std::optional<Dim> moved = offset_of_slice(graph, node);
      if (!moved) return {};
      offset = offset + *moved;
      is_whole = false;
    } else if (node.op->name == "logical_not") {
      is_inverted = !is_inverted;
    } else if (!keeps_matrix(graph, node) && !is_truth_value(graph, node)) {
      return {};
    }
    mask = node.operands.front();
  }
  return {};
}

}  // namespace tenon::passes::recognition
