#include "frontends/onnx/ml_scores.h"

#include "base/error.h"
#include "ops/definition/var_ops.h"

#include <numbers>
#include <numeric>

namespace tenon::frontends::onnx {
namespace {

// Softmax over the nonzero scores; zeros stay zero.
Var softmax_of_nonzero(NodeImport& node, Var scores) {
  const std::vector<Attr> along{{"axes", Attr::Integers{-1}}};
  const Var peak = node.call("reduce_max", {scores}, along);
  const Var is_zero =
      node.call("less_equal", {node.call("abs", {scores}), node.build.scalar(1e-7, scores)});
  const Var powers = node.call(
      "where", {is_zero, scores * node.call("exp", {-peak}), node.call("exp", {scores - peak})});
  return powers / node.call("reduce_sum", {powers}, along);
}

// Quantile of the normal distribution, by Winitzki's approximation of the inverse error function.
Var probit(NodeImport& node, Var share) {
  const double a = 0.147;
  const Var x = share * 2.0 - 1.0;
  const Var logarithm = node.call("log", {(1.0 - x) * (x + 1.0)});
  const Var half = logarithm * 0.5 + 2 / (std::numbers::pi * a);
  const Var root = node.call("sqrt", {half * half - logarithm * (1 / a)});
  const Var inverse = node.call("sign", {x}) * node.call("sqrt", {root - half});
  return inverse * std::numbers::sqrt2;
}

}  // namespace

Var feature_rows(NodeImport& node, DType dtype) {
  const Var x = cast_to(node.input(0), dtype);
  const Dims dims = node.dims(x);
  if (dims.size() == 2) return x;
  if (dims.size() == 1) return reshape_to(x, {1, dims[0]});
  throw Error(concat(node.op_type(), ": the input holds no rows of features"))
      .expected("[rows, features] or [features]")
      .got(node.type(node.input(0)));
}

Var constant_of_reals(NodeImport& node, const std::vector<double>& values, Shape shape,
                      DType dtype) {
  if (checked_element_count(shape) != static_cast<std::int64_t>(values.size())) {
    throw Error(concat(node.op_type(), ": a list has the wrong number of elements"))
        .expected(checked_element_count(shape))
        .got(values.size());
  }
  return node.build.constant(Tensor::of(dtype, std::move(shape), values));
}

std::vector<double> reals_or_tensor(const NodeImport& node, const std::string& name) {
  if (node.has_attr(name + "_as_tensor")) return node.tensor(name + "_as_tensor").reals();
  return node.reals(name);
}

Var transformed_scores(NodeImport& node, Var scores, std::string_view transform) {
  const bool is_one_column = node.dims(scores).back() == Dim(1);
  if (transform == "NONE" || transform.empty()) return scores;
  if (transform == "LOGISTIC") return node.call("sigmoid", {scores});
  if (transform == "PROBIT") return probit(node, scores);
  // A single score is not normalized.
  if (transform == "SOFTMAX") return is_one_column ? scores : node.call("softmax", {scores});
  if (transform == "SOFTMAX_ZERO") return is_one_column ? scores : softmax_of_nonzero(node, scores);
  throw Error(concat(node.op_type(), ": no such post_transform"))
      .expected("NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT")
      .got(transform);
}

Var both_classes(Var scores, std::string_view transform, OneColumn kind) {
  Builder& build = scores.builder();
  if (transform == "LOGISTIC") {
    return build.call("sigmoid", {build.call("concat", {-scores, scores}, {{"axis", 1}})});
  }
  const Var first = kind == OneColumn::Share ? 1.0 - scores : -scores;
  return build.call("concat", {first, scores}, {{"axis", 1}});
}

Var label_list(NodeImport& node, std::int64_t count) {
  for (const char* name : {"classlabels_strings", "classlabels_string"}) {
    if (const std::vector<std::string> texts = node.texts(name); !texts.empty()) {
      return node.build.constant(
          Tensor::of_strings({static_cast<std::int64_t>(texts.size())}, texts));
    }
  }
  for (const char* name : {"classlabels_int64s", "classlabels_ints"}) {
    if (const std::vector<std::int64_t> labels = node.integers(name); !labels.empty()) {
      return node.build.integers(labels);
    }
  }
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return node.build.integers(numbers);
}

Var labels_at(NodeImport& node, Var positions, std::int64_t count) {
  const Var labels = label_list(node, count);
  if (node.build.shape(labels)[0] < count) {
    throw Error(concat(node.op_type(), ": there are fewer labels than classes"))
        .expected(count)
        .got(node.build.shape(labels)[0]);
  }
  return node.call("gather", {labels, positions});
}

}  // namespace tenon::frontends::onnx
