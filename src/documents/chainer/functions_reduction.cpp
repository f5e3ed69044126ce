#include "documents/chainer/functions.h"
#include "ops/families/matrices.h"

#include <algorithm>

namespace tenon::documents::chainer {
namespace {

using Vars = std::vector<Var>;

// Linear layer: y = x W^T + b.
Relation relate_linear(const FunctionView& view) {
  return [view](PartialShapes& shapes) {
    const std::size_t x = view.input(0), w = view.input(1), y = view.output();
    if (!shapes.set_rank(x, 2) || !shapes.set_rank(w, 2) || !shapes.set_rank(y, 2)) return false;
    if (!shapes.same_extent(x, 0, y, 0) || !shapes.same_extent(x, 1, w, 1) ||
        !shapes.same_extent(w, 0, y, 1)) {
      return false;
    }
    if (view.input_count() < 3) return true;
    return shapes.set_rank(view.input(2), 1) && shapes.same_extent(view.input(2), 0, y, 1);
  };
}
Vars build_linear(const FunctionView& view, Builder& build, const Vars& in) {
  const Var w = build.call("transpose", {in[1]}, {{"perm", Attr::Integers{1, 0}}});
  const Var product = build.call("matmul", {in[0], w});
  return {view.input_count() < 3 ? product : build.call("add", {product, in[2]})};
}
double linear_products(const FunctionView& view, const std::vector<Shape>& shapes) {
  const Shape &x = shapes[view.input(0)], &y = shapes[view.output()];
  return static_cast<double>(x[0]) * static_cast<double>(x[1]) * static_cast<double>(y[1]);
}

// Matrix product over the last two axes, with optional transposes; leading axes are equal.
Relation relate_matmul(const FunctionView& view) {
  const bool flips_a = view.flag("transa", false), flips_b = view.flag("transb", false);
  if (view.flag("transc", false)) throw view.error("transc", "a transposed product");
  return [view, flips_a, flips_b](PartialShapes& shapes) {
    const std::size_t a = view.input(0), b = view.input(1), y = view.output();
    if (!shapes.same_rank(a, y) || !shapes.same_rank(b, y) || !shapes.same_rank(y, a)) return false;
    if (shapes.rank(y) < 0) return true;
    const auto rank = static_cast<std::size_t>(shapes.rank(y));
    if (rank < 2) return shapes.refuse(y, "is no matrix");
    for (std::size_t k = 0; k + 2 < rank; ++k) {
      if (!shapes.same_extent(a, k, y, k) || !shapes.same_extent(b, k, y, k)) return false;
    }
    const std::size_t rows = rank - 2, columns = rank - 1;
    return shapes.same_extent(a, flips_a ? columns : rows, y, rows) &&
           shapes.same_extent(b, flips_b ? rows : columns, y, columns) &&
           shapes.same_extent(a, flips_a ? rows : columns, b, flips_b ? columns : rows);
  };
}
Vars build_matmul(const FunctionView& view, Builder& build, const Vars& in) {
  const auto flipped = [&](Var x, bool flips) {
    return flips ? with_last_axes_swapped(build, x) : x;
  };
  const Var a = in[0], b = in.size() > 1 ? in[1] : in[0];
  return {build.call(
      "matmul", {flipped(a, view.flag("transa", false)), flipped(b, view.flag("transb", false))})};
}
double matmul_products(const FunctionView& view, const std::vector<Shape>& shapes) {
  double products = 1;
  for (const std::int64_t extent : shapes[view.output()]) products *= static_cast<double>(extent);
  const Shape& a = shapes[view.input(0)];
  return products * static_cast<double>(view.flag("transa", false) ? a[a.size() - 2] : a.back());
}

// One class index per position; axis 1 of x runs over the classes.
Relation relate_cross_entropy(const FunctionView& view) {
  const bool is_mean = !view.has("reduce") || view.text("reduce") == "mean";
  return [view, is_mean](PartialShapes& shapes) {
    const std::size_t x = view.input(0), t = view.input(1), y = view.output();
    if (shapes.rank(x) >= 0) {
      if (shapes.rank(x) < 2) return shapes.refuse(x, "has no axis of classes");
      if (!shapes.set_rank(t, static_cast<std::size_t>(shapes.rank(x) - 1))) return false;
    } else if (shapes.rank(t) >= 0 &&
               !shapes.set_rank(x, static_cast<std::size_t>(shapes.rank(t) + 1))) {
      return false;
    }
    for (int axis = 0; axis < shapes.rank(t); ++axis) {
      const auto k = static_cast<std::size_t>(axis);
      if (!shapes.same_extent(x, k == 0 ? 0 : k + 1, t, k)) return false;
    }
    // The two element counts determine the number of classes.
    if (shapes.count(x) && shapes.count(t) && *shapes.count(t) > 0 && shapes.rank(x) >= 2) {
      if (*shapes.count(x) % *shapes.count(t) != 0) {
        return shapes.refuse(t, "has no class number for each position");
      }
      if (!shapes.set_extent(x, 1, *shapes.count(x) / *shapes.count(t))) return false;
    }
    return is_mean ? shapes.set_rank(y, 0) : shapes.same_shape(t, y);
  };
}

Vars build_cross_entropy(const FunctionView& view, Builder& build, const Vars& in) {
  if (view.has("class_weight")) throw Error("a weight for each class", ErrorKind::Unsupported);
  const std::string& reduce = view.has("reduce") ? view.text("reduce") : "mean";
  const bool is_mean = reduce == "mean", counts_valid = view.flag("normalize", true);
  std::vector<Attr> attrs{{"ignore_index", view.integer("ignore_label", -kMaxExtentAttribute,
                                                        kMaxExtentAttribute, -1)}};
  if (!is_mean) attrs.emplace_back("reduction", "none");
  if (is_mean && !counts_valid) attrs.emplace_back("reduction", "sum");
  const Var logs = build.call("log_softmax", {in[0]}, {{"axis", 1}});
  const Var loss = build.call("nll_loss", {logs, in[1]}, attrs);
  // Without counting valid positions, the mean is over the whole batch.
  if (is_mean && !counts_valid)
    return {loss * (1.0 / static_cast<double>(std::max<std::int64_t>(build.shape(in[1])[0], 1)))};
  return {loss};
}
std::int64_t hidden_by_cross_entropy(const FunctionView& view) {
  return view.flag("cache_score", true) ? view.bytes(view.input(0)) : 0;
}

Relation relate_squared_error(const FunctionView& view) {
  return [view](PartialShapes& shapes) {
    return shapes.same_shape(view.input(0), view.input(view.input_count() - 1)) &&
           shapes.set_rank(view.output(), 0);
  };
}
Vars build_squared_error(const FunctionView&, Builder& build, const Vars& in) {
  const Var difference = in[0] - in[in.size() - 1];
  return {build.call("reduce_mean", {difference * difference}, {{"keep_axes", false}})};
}

Relation relate_sum(const FunctionView& view) {
  const bool keeps = view.flag("keepdims", false);
  return [view, keeps](PartialShapes& shapes) {
    const std::size_t x = view.input(0), y = view.output();
    if (shapes.rank(x) < 0) return view.has("axis") || keeps || shapes.set_rank(y, 0);
    const auto rank = static_cast<std::int64_t>(shapes.rank(x));
    std::vector<bool> goes(static_cast<std::size_t>(rank), !view.has("axis"));
    for (const std::int64_t axis :
         view.has("axis") ? view.integers("axis") : std::vector<std::int64_t>{}) {
      if (axis < -rank || axis >= rank) return shapes.refuse(x, concat("has no axis ", axis));
      goes[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = true;
    }
    const auto gone = static_cast<std::size_t>(std::count(goes.begin(), goes.end(), true));
    if (!shapes.set_rank(y, goes.size() - (keeps ? 0 : gone))) return false;
    std::size_t to = 0;
    for (std::size_t k = 0; k < goes.size(); ++k) {
      if (goes[k] && !keeps) continue;
      if (!(goes[k] ? shapes.set_extent(y, to, 1) : shapes.same_extent(x, k, y, to))) return false;
      ++to;
    }
    return true;
  };
}
Vars build_sum(const FunctionView& view, Builder& build, const Vars& in) {
  std::vector<Attr> attrs;
  if (view.has("axis")) attrs.emplace_back("axes", view.integers("axis"));
  if (!view.flag("keepdims", false)) attrs.emplace_back("keep_axes", false);
  return {build.call("reduce_sum", in, attrs)};
}

}  // namespace

std::span<const FunctionRule> reduction_functions() {
  static const FunctionRule rules[] = {
      {.name = "LinearFunction",
       .least_inputs = 2,
       .most_inputs = 3,
       .relate = relate_linear,
       .build = build_linear,
       .retained = retains_inputs,
       .multiply_adds = linear_products},
      {.name = "MatMul",
       .least_inputs = 2,
       .most_inputs = 2,
       .relate = relate_matmul,
       .build = build_matmul,
       .retained = retains_inputs,
       .multiply_adds = matmul_products},
      {.name = "SoftmaxCrossEntropy",
       .least_inputs = 2,
       .most_inputs = 2,
       .relate = relate_cross_entropy,
       .build = build_cross_entropy,
       .retained = retains_inputs,
       .integer_input = 1,
       .hidden_bytes = hidden_by_cross_entropy},
      {.name = "MeanSquaredError",
       .least_inputs = 1,
       .most_inputs = 2,
       .relate = relate_squared_error,
       .build = build_squared_error,
       .retained = retains_inputs},
      {.name = "Sum", .relate = relate_sum, .build = build_sum, .retained = retains_nothing},
  };
  return rules;
}

}  // namespace tenon::documents::chainer
