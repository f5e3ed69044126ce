#include "ops/families/movement.h"
#include "passes/rewrite/facts.h"
#include "passes/simplify/rules.h"

#include <algorithm>

namespace tenon::passes::simplification {

using namespace rewrite;

namespace {

/// Range of a slice along one axis of its operand, with a positive step.
struct SliceRange {
  Dim start = 0;
  std::int64_t step = 1;
  Dim count;
};

// Returns the attributes of a slice node as numbers or symbols; nullopt if a bound is unresolved or
// the step is negative.
std::optional<std::vector<SliceRange>> parts_of(const Graph& graph, const Node& slice) {
  const Type& type = graph.value(slice.operands.front()).type;
  if (slice.operands.size() != 1 || !type.is_tensor()) return {};
  const auto list = [&](const char* name) {
    const AttrValue* value = slice.attrs.find(name);
    return value ? std::get<Dims>(*value) : Dims{};
  };
  const Dims& extents = type.tensor().dims;
  std::vector<SliceRange> parts;
  for (const Dim& extent : extents) parts.push_back({0, 1, extent});
  const Dims starts = list("starts"), ends = list("ends"), steps = list("steps");
  Dims axes = list("axes");
  if (axes.empty()) {
    for (std::size_t k = 0; k < starts.size(); ++k) axes.emplace_back(static_cast<std::int64_t>(k));
  }
  const auto places = counted_axes(axes, extents.size());
  if (!places || ends.size() != starts.size() || axes.size() != starts.size()) return {};
  for (std::size_t k = 0; k < starts.size(); ++k) {
    const std::int64_t step = steps.empty() ? 1 : steps[k].constant();
    const auto axis = static_cast<std::size_t>((*places)[k]);
    if (step < 1 || step > kMaxExtent) return {};
    const auto span = slice_span(starts[k], ends[k], step, extents[axis]);
    if (!span) return {};
    parts[axis] = {span->start, step, span->count};
  }
  return parts;
}

std::optional<std::vector<SliceRange>> parts_of(const Match& match, std::string_view slice) {
  return parts_of(match.graph(), match.node(slice));
}

bool is_whole(const SliceRange& part, const Dim& extent) {
  return part.step == 1 && part.count == extent && part.start == Dim(0);
}

// Makes a slice of these ranges; returns x itself if they cover it.
ValueId make_slice(const Match& match, ValueId x, const std::vector<SliceRange>& parts) {
  const Dims& extents = match.type(x)->dims;
  Dims starts, ends, axes, steps;
  bool has_steps = false;
  for (std::size_t axis = 0; axis < parts.size(); ++axis) {
    const SliceRange& part = parts[axis];
    if (is_whole(part, extents[axis])) continue;
    const Dim end = part.start + part.count * Dim(part.step);
    if (!is_written_down(part.start) || !is_written_down(end)) {
      match.refuse("a bound only shows when the graph runs");
      return {};
    }
    starts.push_back(part.start);
    ends.push_back(end);
    axes.emplace_back(static_cast<std::int64_t>(axis));
    steps.emplace_back(part.step);
    has_steps |= part.step != 1;
  }
  if (axes.empty()) return x;
  Attributes attrs{{"starts", starts}, {"ends", ends}, {"axes", axes}};
  if (has_steps) attrs.set("steps", steps);
  return match.make("slice", {x}, std::move(attrs));
}

bool takes_everything(const Match& match) {
  const TensorType* x = match.type("x");
  const auto parts = x ? parts_of(match.graph(), match.root_node()) : std::nullopt;
  if (!parts) return false;
  for (std::size_t axis = 0; axis < parts->size(); ++axis) {
    if (!is_whole((*parts)[axis], x->dims[axis])) return false;
  }
  return true;
}

ValueId one_slice(const Match& match) {
  const auto inner = parts_of(match, "y"), outer = parts_of(match.graph(), match.root_node());
  if (!inner || !outer) return {};
  std::vector<SliceRange> both;
  for (std::size_t axis = 0; axis < inner->size(); ++axis) {
    const SliceRange &a = (*inner)[axis], &b = (*outer)[axis];
    if (a.step > kMaxExtent / b.step) return {};
    both.push_back({a.start + b.start * Dim(a.step), a.step * b.step, b.count});
  }
  return make_slice(match, match.value("x"), both);
}

std::optional<std::size_t> concat_axis(const Match& match, const Node& concat) {
  const TensorType* first = match.type(concat.operands.front());
  if (!first) return {};
  const auto axis = counted_axes({std::get<Dim>(*concat.attrs.find("axis"))}, first->rank());
  if (!axis) return {};
  return static_cast<std::size_t>(axis->front());
}

// Slices only those operands of a concat that the slice reads.
ValueId slice_of_part(const Match& match) {
  const Node& concat = match.node("y");
  const auto parts = parts_of(match.graph(), match.root_node());
  const auto along = concat_axis(match, concat);
  if (!parts || !along) return {};
  const SliceRange part = (*parts)[*along];
  if (part.step != 1 || !part.start.is_constant() || !part.count.is_constant()) return {};
  const std::int64_t begin = part.start.constant(), end = begin + part.count.constant();
  std::int64_t at = 0, skipped = 0;
  std::vector<ValueId> needed;
  for (ValueId x : concat.operands) {
    const TensorType* type = match.type(x);
    if (!type || !type->dims[*along].is_constant()) {
      if (at >= end && !needed.empty()) break;  // operands after the slice do not matter
      return {};
    }
    const std::int64_t next = at + type->dims[*along].constant();
    if (next > begin && at < end) {
      if (needed.empty()) skipped = at;
      needed.push_back(x);
    }
    at = next;
  }
  if (needed.empty() || needed.size() == concat.operands.size()) return {};
  std::vector<SliceRange> inside = *parts;
  inside[*along].start = part.start - Dim(skipped);
  if (needed.size() == 1) return make_slice(match, needed.front(), inside);
  // Several operands: only if all are needed whole, so that no slice follows the shorter concat.
  Dim total = 0;
  for (ValueId x : needed) total = total + match.type(x)->dims[*along];
  if (!is_whole(inside[*along], total)) return {};
  const ValueId joined =
      match.make("concat", needed, {{"axis", Dim(static_cast<std::int64_t>(*along))}});
  return make_slice(match, joined, inside);
}

// Merges a concat of adjacent slices of one value.
ValueId joined_slices(const Match& match) {
  const Node& concat = match.root_node();
  const auto along = concat_axis(match, concat);
  if (!along) return {};
  ValueId x;
  std::vector<SliceRange> whole;
  for (ValueId operand : concat.operands) {
    const NodeId id = match.graph().value(operand).producer;
    if (!id || match.graph().op_name(id) != "slice") return {};
    const Node& slice = match.graph().node(id);
    const auto parts = parts_of(match.graph(), slice);
    if (!parts) return {};
    if (!x) {
      x = slice.operands.front();
      whole = *parts;
      continue;
    }
    if (slice.operands.front() != x) return {};
    for (std::size_t axis = 0; axis < whole.size(); ++axis) {
      const SliceRange &a = whole[axis], &b = (*parts)[axis];
      const Dim start = axis == *along ? a.start + a.count * Dim(a.step) : a.start;
      if (a.step != b.step || !(b.start == start)) return {};
      if (axis != *along && !(a.count == b.count)) return {};
    }
    whole[*along].count = whole[*along].count + (*parts)[*along].count;
  }
  return make_slice(match, x, whole);
}

// Merges a concat of all parts of a split, in order.
ValueId joined_split(const Match& match) {
  const Node& concat = match.root_node();
  const NodeId id = match.graph().value(concat.operands.front()).producer;
  if (!id || match.graph().op_name(id) != "split") return {};
  const Node& split = match.graph().node(id);
  if (split.results != concat.operands) return {};
  const TensorType* x = match.type(split.operands.front());
  const auto along = concat_axis(match, concat);
  if (!x || !along) return {};
  const AttrValue* axis = split.attrs.find("axis");
  const auto cut = counted_axes({axis ? std::get<Dim>(*axis) : Dim(0)}, x->rank());
  if (!cut || static_cast<std::size_t>(cut->front()) != *along) return {};
  return split.operands.front();
}

// Flattens nested concats along the same axis and drops empty operands.
ValueId flat_concat(const Match& match) {
  const Node& concat = match.root_node();
  const auto along = concat_axis(match, concat);
  if (!along) return {};
  std::vector<ValueId> flat;
  bool has_changed = false;
  for (ValueId operand : concat.operands) {
    const TensorType* type = match.type(operand);
    const NodeId id = match.graph().value(operand).producer;
    if (type && type->dims[*along] == Dim(0) && concat.operands.size() > 1) {
      has_changed = true;
      continue;
    }
    if (id && match.graph().op_name(id) == "concat" && match.is_read_once(operand) &&
        concat_axis(match, match.graph().node(id)) == along) {
      const std::vector<ValueId>& inner = match.graph().node(id).operands;
      flat.insert(flat.end(), inner.begin(), inner.end());
      has_changed = true;
      continue;
    }
    flat.push_back(operand);
  }
  if (!has_changed || flat.empty()) return {};
  return match.make("concat", std::move(flat), concat.attrs);
}

// Rewrites a gather of consecutive indices to a slice.
ValueId gathered_slice(const Match& match) {
  const TensorType* x = match.type("x");
  const Constant* indices = match.graph().constant_of(match.value("i"));
  if (!x || !indices || indices->shape().size() != 1 || indices->size() == 0) return {};
  if (indices->size() > 4096 ||
      (indices->kind() != Constant::Kind::Dense && indices->kind() != Constant::Kind::Splat)) {
    return {};
  }
  const auto axis = counted_axes({match.dim("a")}, x->rank());
  if (!axis) return {};
  const std::vector<std::int64_t> places = indices->materialise().integers();
  const Dim& extent = x->dims[static_cast<std::size_t>(axis->front())];
  for (std::size_t k = 0; k < places.size(); ++k) {
    if (places[k] != places[0] + static_cast<std::int64_t>(k) || places[0] < 0) return {};
  }
  // Out-of-range indices are an error at run time; a slice would be shorter.
  if (!provably_at_most(Dim(places.back() + 1), extent)) return {};
  std::vector<SliceRange> parts;
  for (const Dim& whole : x->dims) parts.push_back({0, 1, whole});
  parts[static_cast<std::size_t>(axis->front())] = {places[0], 1,
                                                    static_cast<std::int64_t>(places.size())};
  return make_slice(match, match.value("x"), parts);
}

bool has_no_updates(const Match& match) {
  const TensorType* updates = match.type("u");
  return updates && element_count(*updates) == Dim(0);
}

}  // namespace

std::vector<Rule> slice_rules() {
  return {
      {"slice(x) {..}", "x", takes_everything},
      {"slice(y: slice(x) {..}) {..}", one_slice},
      {"slice(y: concat(...xs) {..}) {..}", slice_of_part},
      {"concat(x) {..}", "x"},
      {"concat(...xs) {..}", joined_slices},
      {"concat(...xs) {..}", joined_split},
      {"concat(...xs) {..}", flat_concat},
      {"gather(x, i) {axis = a}", gathered_slice},
      {"scatter_elements/scatter_nd(x, _, u) {..}", "x", has_no_updates},
  };
}

}  // namespace tenon::passes::simplification
