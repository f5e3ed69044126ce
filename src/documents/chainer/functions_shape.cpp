#include "base/text.h"
#include "documents/chainer/functions.h"

#include <algorithm>
#include <numeric>

namespace tenon::documents::chainer {
namespace {

using Vars = std::vector<Var>;
constexpr std::int64_t kUnknown = PartialShapes::kUnknown;

Relation relate_concat(const FunctionView& view) {
  return [view](PartialShapes& shapes) {
    const std::size_t y = view.output();
    for (const std::size_t x : view.inputs()) {
      if (!shapes.same_rank(x, y)) return false;
    }
    if (shapes.rank(y) < 0) return true;
    const auto rank = static_cast<std::size_t>(shapes.rank(y));
    const std::size_t axis = view.axis("axis", rank);
    std::int64_t total = 0;
    std::size_t open = kNone, open_count = 0;
    for (const std::size_t x : view.inputs()) {
      if (!shapes.same_rank(y, x)) return false;
      for (std::size_t k = 0; k < rank; ++k) {
        if (k != axis && !shapes.same_extent(x, k, y, k)) return false;
      }
      const std::int64_t extent = shapes.extent(x, axis);
      if (extent == kUnknown) {
        open = x;
        ++open_count;
      } else {
        total += extent;
      }
    }
    if (open_count == 0) return shapes.set_extent(y, axis, total);
    const std::int64_t whole = shapes.extent(y, axis);
    return open_count > 1 || whole == kUnknown || shapes.set_extent(open, axis, whole - total);
  };
}
Vars build_concat(const FunctionView& view, Builder& build, const Vars& in) {
  return {build.call("concat", in, {{"axis", view.integer("axis", -8, 8)}})};
}

// Expands `...` to whole slices.
std::vector<Subscript> spelled_out(const FunctionView& view, std::size_t rank) {
  std::vector<Subscript> subscripts = subscripts_of(view);
  const auto takes_axis = [](const Subscript& each) {
    return each.kind == Subscript::Kind::Slice || each.kind == Subscript::Kind::Index;
  };
  const auto taken =
      static_cast<std::size_t>(std::count_if(subscripts.begin(), subscripts.end(), takes_axis));
  if (taken > rank) throw view.error("slices", concat("more subscripts than the ", rank, " axes"));
  auto dots = std::find_if(subscripts.begin(), subscripts.end(), [](const Subscript& each) {
    return each.kind == Subscript::Kind::Ellipsis;
  });
  const std::vector<Subscript> whole(rank - taken);
  if (dots == subscripts.end()) {
    subscripts.insert(subscripts.end(), whole.begin(), whole.end());
  } else {
    subscripts.insert(subscripts.erase(dots), whole.begin(), whole.end());
  }
  return subscripts;
}

Relation relate_get_item(const FunctionView& view) {
  subscripts_of(view);  // throws for invalid subscripts
  return [view](PartialShapes& shapes) {
    const std::size_t x = view.input(0), y = view.output();
    if (shapes.rank(x) < 0) {
      // Slices alone preserve the rank; with `...` it stays open.
      const std::vector<Subscript> all = subscripts_of(view);
      const bool is_plain = std::all_of(all.begin(), all.end(), [](const Subscript& each) {
        return each.kind == Subscript::Kind::Slice;
      });
      if (!is_plain || shapes.rank(y) < 0) return true;
      if (!shapes.same_rank(x, y)) return false;
    }
    const std::vector<Subscript> subscripts =
        spelled_out(view, static_cast<std::size_t>(shapes.rank(x)));
    std::size_t rank = 0, from = 0, to = 0;
    for (const Subscript& each : subscripts) rank += each.kind != Subscript::Kind::Index;
    if (!shapes.set_rank(y, rank)) return false;
    for (const Subscript& each : subscripts) {
      if (each.kind == Subscript::Kind::NewAxis) {
        if (!shapes.set_extent(y, to++, 1)) return false;
        continue;
      }
      const std::int64_t extent = shapes.extent(x, from);
      if (each.kind == Subscript::Kind::Index) {
        if (extent != kUnknown && (*each.start >= extent || *each.start < -extent)) {
          return shapes.refuse(x, concat("has no position ", *each.start, " along axis ", from));
        }
      } else if (each.is_whole()) {
        if (!shapes.same_extent(x, from, y, to)) return false;
      } else if (extent != kUnknown && !shapes.set_extent(y, to, each.count(extent))) {
        return false;
      } else if (extent == kUnknown && !shapes.count(x) && shapes.extent(y, to) != kUnknown &&
                 each.start.value_or(0) >= 0 && each.stop.value_or(0) <= 0 &&
                 each.step.value_or(1) == 1) {
        // Without another constraint, the extent is the slice's extent plus the cuts at both ends.
        const std::int64_t whole =
            shapes.extent(y, to) + each.start.value_or(0) - each.stop.value_or(0);
        if (!shapes.set_extent(x, from, whole)) return false;
      }
      ++from;
      to += each.kind == Subscript::Kind::Slice;
    }
    return true;
  };
}

Vars build_get_item(const FunctionView& view, Builder& build, const Vars& in) {
  const std::vector<std::int64_t> x = build.shape(in[0]);
  Attr::Integers starts, ends, axes, steps, dropped, added;
  std::int64_t from = 0, to = 0;
  bool has_steps = false;
  for (const Subscript& each : spelled_out(view, x.size())) {
    if (each.kind == Subscript::Kind::NewAxis) {
      added.push_back(to++);
      continue;
    }
    if (each.kind == Subscript::Kind::Index) {
      dropped.push_back(from);
      starts.push_back(*each.start);
      ends.push_back(*each.start == -1 ? x[static_cast<std::size_t>(from)] : *each.start + 1);
      axes.push_back(from);
      steps.push_back(1);
    } else if (!each.is_whole()) {
      const std::int64_t step = each.step.value_or(1);
      if (step < 1) throw Error("a subscript with a step below one", ErrorKind::Unsupported);
      starts.push_back(each.start.value_or(0));
      ends.push_back(each.stop.value_or(x[static_cast<std::size_t>(from)]));
      axes.push_back(from);
      steps.push_back(step);
      has_steps = has_steps || step != 1;
    }
    ++from;
    to += each.kind == Subscript::Kind::Slice;
  }
  Var y = in[0];
  if (!axes.empty()) {
    std::vector<Attr> attrs{{"starts", starts}, {"ends", ends}, {"axes", axes}};
    if (has_steps) attrs.emplace_back("steps", steps);
    y = build.call("slice", {y}, attrs);
  }
  if (!dropped.empty()) y = build.call("squeeze", {y}, {{"axes", dropped}});
  if (!added.empty()) y = build.call("unsqueeze", {y}, {{"axes", added}});
  if (axes.empty() && added.empty()) y = build.call("identity", {y});
  return {y};
}

Relation relate_reshape(const FunctionView& view) {
  const std::vector<std::int64_t> shape = view.integers("shape");
  return [view, shape](PartialShapes& shapes) {
    const std::size_t y = view.output();
    if (shapes.count(view.input(0)) && shapes.count(y) &&
        shapes.count(view.input(0)) != shapes.count(y)) {
      return shapes.refuse(y, "has another number of elements than what is reshaped");
    }
    if (!shapes.set_rank(y, shape.size())) return false;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] >= 0 && !shapes.set_extent(y, axis, shape[axis])) return false;
    }
    return true;
  };
}
Vars build_reshape(const FunctionView& view, Builder& build, const Vars& in) {
  return {build.call("reshape", in, {{"shape", view.integers("shape")}})};
}

std::vector<std::size_t> permutation_of(const FunctionView& view, std::size_t rank) {
  std::vector<std::size_t> axes(rank);
  std::iota(axes.rbegin(), axes.rend(), std::size_t{0});
  if (!view.has("axes")) return axes;
  const std::vector<std::int64_t> given = view.integers("axes");
  if (given.size() != rank)
    throw view.error("axes", concat("not one entry for each of ", rank, " axes"));
  std::vector<bool> seen(rank, false);
  for (std::size_t k = 0; k < rank; ++k) {
    const std::int64_t axis = given[k] < 0 ? given[k] + static_cast<std::int64_t>(rank) : given[k];
    if (axis < 0 || axis >= static_cast<std::int64_t>(rank) ||
        seen[static_cast<std::size_t>(axis)]) {
      throw view.error("axes", "this is no permutation");
    }
    axes[k] = static_cast<std::size_t>(axis);
    seen[axes[k]] = true;
  }
  return axes;
}

Relation relate_transpose(const FunctionView& view) {
  if (view.has("axes")) permutation_of(view, view.integers("axes").size());
  return [view](PartialShapes& shapes) {
    const std::size_t x = view.input(0), y = view.output();
    if (view.has("axes") && !shapes.set_rank(x, view.integers("axes").size())) return false;
    if (!shapes.same_rank(x, y)) return false;
    if (shapes.rank(x) < 0) return true;
    const std::vector<std::size_t> axes =
        permutation_of(view, static_cast<std::size_t>(shapes.rank(x)));
    for (std::size_t k = 0; k < axes.size(); ++k) {
      if (!shapes.same_extent(x, axes[k], y, k)) return false;
    }
    return true;
  };
}
Vars build_transpose(const FunctionView& view, Builder& build, const Vars& in) {
  if (!view.has("axes")) return {build.call("transpose", in)};
  Attr::Integers perm;
  for (const std::size_t axis : permutation_of(view, build.rank(in[0])))
    perm.push_back(static_cast<std::int64_t>(axis));
  return {build.call("transpose", in, {{"perm", perm}})};
}

Relation relate_broadcast_to(const FunctionView& view) {
  const std::vector<std::int64_t> shape = view.integers("_shape");
  return [view, shape](PartialShapes& shapes) { return shapes.set_shape(view.output(), shape); };
}
Vars build_broadcast_to(const FunctionView& view, Builder& build, const Vars& in) {
  return {build.call("expand", in, {{"shape", view.integers("_shape")}})};
}

Relation relate_expand_dims(const FunctionView& view) {
  const std::int64_t given = view.integer("axis", -8, 8);
  return [view, given](PartialShapes& shapes) {
    const std::size_t x = view.input(0), y = view.output();
    if (shapes.rank(x) < 0) return true;
    const auto rank = static_cast<std::size_t>(shapes.rank(x));
    const std::int64_t axis = given < 0 ? given + static_cast<std::int64_t>(rank) + 1 : given;
    if (axis < 0 || axis > static_cast<std::int64_t>(rank))
      return shapes.refuse(x, "has no such axis");
    if (!shapes.set_rank(y, rank + 1)) return false;
    for (std::size_t k = 0; k <= rank; ++k) {
      const auto place = static_cast<std::size_t>(axis);
      if (!(k == place ? shapes.set_extent(y, k, 1)
                       : shapes.same_extent(x, k < place ? k : k - 1, y, k)))
        return false;
    }
    return true;
  };
}
Vars build_expand_dims(const FunctionView& view, Builder& build, const Vars& in) {
  return {build.call("unsqueeze", in, {{"axes", Attr::Integers{view.integer("axis", -8, 8)}}})};
}

Relation relate_squeeze(const FunctionView& view) {
  return [view](PartialShapes& shapes) {
    const std::size_t x = view.input(0);
    if (!shapes.is_complete(x)) return true;
    Shape kept;
    const Shape& extents = shapes.extents(x);
    const auto rank = static_cast<std::int64_t>(extents.size());
    std::vector<bool> goes(extents.size(), false);
    for (std::size_t k = 0; k < extents.size(); ++k) goes[k] = !view.has("axis") && extents[k] == 1;
    for (const std::int64_t axis :
         view.has("axis") ? view.integers("axis") : std::vector<std::int64_t>{}) {
      if (axis < -rank || axis >= rank) return shapes.refuse(x, "has no such axis");
      goes[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = true;
    }
    for (std::size_t k = 0; k < extents.size(); ++k) {
      if (!goes[k]) kept.push_back(extents[k]);
    }
    return shapes.set_shape(view.output(), kept);
  };
}
Vars build_squeeze(const FunctionView& view, Builder& build, const Vars& in) {
  if (!view.has("axis")) return {build.call("squeeze", in)};
  return {build.call("squeeze", in, {{"axes", view.integers("axis")}})};
}

// Returns the end of each part; `total` is the extent of the axis.
std::optional<Attr::Integers> parts_of(const FunctionView& view, std::int64_t total) {
  const std::size_t count = view.function().outputs.size();
  const frontends::JsonValue& given = view.function().find("indices_or_sections")->value;
  Attr::Integers parts;
  if (std::holds_alternative<std::int64_t>(given.value)) {
    const std::int64_t sections = view.integer("indices_or_sections", 1, kMaxWindow);
    if (total % sections != 0 || sections != static_cast<std::int64_t>(count)) return std::nullopt;
    return Attr::Integers(count, total / sections);
  }
  std::int64_t before = 0;
  for (const std::int64_t index : view.integers("indices_or_sections")) {
    parts.push_back(index - before);
    before = index;
  }
  parts.push_back(total - before);
  if (parts.size() != count ||
      std::any_of(parts.begin(), parts.end(), [](auto part) { return part < 0; })) {
    return std::nullopt;
  }
  return parts;
}

Relation relate_split(const FunctionView& view) {
  if (!view.has("indices_or_sections"))
    throw view.error("indices_or_sections", "SplitAxis does not say where");
  return [view](PartialShapes& shapes) {
    const std::size_t x = view.input(0);
    for (const std::size_t y : view.function().outputs) {
      if (!shapes.same_rank(x, y)) return false;
    }
    if (!shapes.is_complete(x)) return true;
    const std::size_t axis = view.axis("axis", shapes.extents(x).size());
    const auto parts = parts_of(view, shapes.extents(x)[axis]);
    if (!parts) return shapes.refuse(x, "does not split into as many parts");
    for (std::size_t k = 0; k < parts->size(); ++k) {
      Shape part = shapes.extents(x);
      part[axis] = (*parts)[k];
      if (!shapes.set_shape(view.output(k), part)) return false;
    }
    return true;
  };
}
Vars build_split(const FunctionView& view, Builder& build, const Vars& in) {
  const std::size_t axis = view.axis("axis", build.rank(in[0]));
  const auto parts = parts_of(view, build.shape(in[0])[axis]);
  if (!parts) throw Error("a split some of whose parts are not listed", ErrorKind::Unsupported);
  const std::vector<Attr> attrs{{"axis", static_cast<std::int64_t>(axis)}, {"sizes", *parts}};
  return build.call_all("split", in, attrs, std::vector<std::string>(parts->size()));
}

// W has one row per class index.
Relation relate_embed(const FunctionView& view) {
  return [view](PartialShapes& shapes) {
    const std::size_t x = view.input(0), w = view.input(1), y = view.output();
    if (!shapes.set_rank(w, 2)) return false;
    if (view.has("_w_shape") && !shapes.set_shape(w, view.integers("_w_shape"))) return false;
    if (shapes.rank(x) < 0 && shapes.rank(y) > 0 &&
        !shapes.set_rank(x, static_cast<std::size_t>(shapes.rank(y) - 1))) {
      return false;
    }
    if (shapes.rank(x) < 0) return true;
    const auto rank = static_cast<std::size_t>(shapes.rank(x));
    if (!shapes.set_rank(y, rank + 1) || !shapes.same_extent(w, 1, y, rank)) return false;
    for (std::size_t k = 0; k < rank; ++k) {
      if (!shapes.same_extent(x, k, y, k)) return false;
    }
    return true;
  };
}
Vars build_embed(const FunctionView& view, Builder& build, const Vars& in) {
  if (view.has("ignore_label")) throw Error("an ignored label", ErrorKind::Unsupported);
  return {build.call("gather", {in[1], in[0]}, {{"axis", 0}})};
}
std::vector<Retained> retained_by_embed(const FunctionView&) { return {{{0}, {}}}; }

}  // namespace

std::span<const FunctionRule> shape_functions() {
  static const FunctionRule rules[] = {
      {.name = "Concat",
       .most_inputs = 1 << 16,
       .relate = relate_concat,
       .build = build_concat,
       .retained = retains_nothing},
      {.name = "GetItem",
       .relate = relate_get_item,
       .build = build_get_item,
       .retained = retains_nothing},
      {.name = "Reshape",
       .relate = relate_reshape,
       .build = build_reshape,
       .retained = retains_nothing},
      {.name = "Transpose",
       .relate = relate_transpose,
       .build = build_transpose,
       .retained = retains_nothing},
      {.name = "BroadcastTo",
       .relate = relate_broadcast_to,
       .build = build_broadcast_to,
       .retained = retains_nothing},
      {.name = "ExpandDims",
       .relate = relate_expand_dims,
       .build = build_expand_dims,
       .retained = retains_nothing},
      {.name = "Squeeze",
       .relate = relate_squeeze,
       .build = build_squeeze,
       .retained = retains_nothing},
      {.name = "SplitAxis",
       .relate = relate_split,
       .build = build_split,
       .retained = retains_nothing},
      {.name = "EmbedIDFunction",
       .least_inputs = 2,
       .most_inputs = 2,
       .relate = relate_embed,
       .build = build_embed,
       .retained = retained_by_embed,
       .integer_input = 0},
  };
  return rules;
}

}  // namespace tenon::documents::chainer
