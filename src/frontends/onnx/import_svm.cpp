// ai.onnx.ml's support vector machines, as products with constant matrices.
#include "base/error.h"
#include "frontends/onnx/ml_scores.h"
#include "ops/definition/var_ops.h"

namespace tenon::frontends::onnx {
namespace {

using Reals = std::vector<double>;

std::int64_t size_of(const auto& list) { return static_cast<std::int64_t>(list.size()); }

Var transposed(NodeImport& node, Var matrix) {
  return node.call("transpose", {matrix}, {{"perm", Attr::Integers{1, 0}}});
}

/// gamma, coef0 and degree of a kernel; missing ones are 0.
struct SvmKernel {
  std::string type;
  double gamma = 0, offset = 0, degree = 0;
};

SvmKernel kernel_of(const NodeImport& node) {
  SvmKernel kernel{node.text("kernel_type", "LINEAR")};
  const Reals params = node.reals("kernel_params");
  if (!params.empty()) kernel.gamma = params[0];
  if (params.size() > 1) kernel.offset = params[1];
  if (params.size() > 2) kernel.degree = params[2];
  return kernel;
}

// The kernel of every row of x [rows, features] with every row of `other` [count, features].
Var kernel_matrix(NodeImport& node, const SvmKernel& kernel, Var x, Var other) {
  if (kernel.type == "RBF") {
    const Dims dims = node.dims(x), others = node.dims(other);
    const Var away = reshape_to(x, {dims[0], 1, dims[1]}) - other;
    const Var squares =
        node.call("reduce_sum_square", {away}, {{"axes", Attr::Integers{2}}, {"keep_axes", false}});
    return node.call("exp", {squares * -kernel.gamma});
  }
  const Var products = node.call("matmul", {x, transposed(node, other)});
  if (kernel.type == "LINEAR") return products;
  const Var shifted = products * kernel.gamma + kernel.offset;
  if (kernel.type == "POLY")
    return node.call("pow", {shifted, node.build.scalar(kernel.degree, shifted)});
  if (kernel.type == "SIGMOID") return node.call("tanh", {shifted});
  throw Error(concat(node.op_type(), ": no such kernel_type"))
      .expected("LINEAR, POLY, RBF or SIGMOID")
      .got(kernel.type);
}

Var support_vectors(NodeImport& node, std::int64_t count) {
  const Reals vectors = node.reals("support_vectors");
  if (count < 1 || size_of(vectors) % count != 0) {
    throw Error(concat(node.op_type(), ": the support vectors do not come out even"))
        .got(vectors.size(), " numbers of ", count, " vectors");
  }
  return constant_of_reals(node, vectors, {count, size_of(vectors) / count});
}

void import_svm_regressor(NodeImport& node) {
  const Var x = feature_rows(node);
  const std::int64_t count = node.integer("n_supports", 0);
  const Reals weights = node.reals("coefficients"), rho = node.reals("rho");
  if (rho.empty()) throw Error("SVMRegressor: it has no rho");
  SvmKernel kernel = kernel_of(node);
  Var scores;
  if (count > 0) {
    const Var near = kernel_matrix(node, kernel, x, support_vectors(node, count));
    scores = node.call("matmul", {near, constant_of_reals(node, weights, {count, 1})});
  } else {
    kernel.type = "LINEAR";
    scores =
        kernel_matrix(node, kernel, x, constant_of_reals(node, weights, {1, size_of(weights)}));
  }
  scores = scores + rho[0];
  if (node.integer("one_class", 0) != 0) {
    const Var is_inside = node.call("greater", {scores, node.build.scalar(0, scores)});
    node.output(node.call(
        "where", {is_inside, node.build.scalar(1, scores), node.build.scalar(-1, scores)}));
    return;
  }
  node.output(transformed_scores(node, scores, node.text("post_transform", "NONE")));
}

/// One-vs-one classification: each pair of classes votes for one of them; the first class with the
/// most votes is the label.
class PairwiseClassifier {
 public:
  explicit PairwiseClassifier(NodeImport& import)
      : node(import), by_class(import.integers("vectors_per_class")), classes(size_of(by_class)) {
    for (std::int64_t count : by_class) {
      if (count < 0)
        throw Error("SVMClassifier: a class has a negative number of vectors").got(count);
      starts.push_back(vector_count);
      vector_count += count;
    }
    pairs = classes * (classes - 1) / 2;
  }

  void run() {
    const Var x = feature_rows(node);
    const Var near = kernel_matrix(node, kernel_of(node), x, support_vectors(node, vector_count));
    const Var scores = node.call("matmul", {near, pair_weights()}) + pair_offsets();
    const Var is_first = node.call("greater", {scores, node.build.scalar(0, scores)});
    Reals firsts(static_cast<std::size_t>(pairs * classes)), seconds(firsts.size());
    for_pairs([&](std::int64_t pair, std::int64_t first, std::int64_t second) {
      firsts[static_cast<std::size_t>(pair * classes + first)] = 1;
      seconds[static_cast<std::size_t>(pair * classes + second)] = 1;
    });
    const Var wins = cast_to(is_first, DType::F32);
    const Var votes =
        node.call("matmul", {wins, constant_of_reals(node, firsts, {pairs, classes})}) +
        node.call("matmul", {1.0 - wins, constant_of_reals(node, seconds, {pairs, classes})});
    const std::string transform = node.text("post_transform", "NONE");
    const bool has_shares = !node.reals("prob_a").empty();
    Var given = scores;
    if (has_shares) given = shares(scores);  // votes decide the label in both cases
    node.output(0,
                labels_at(node, node.call("arg_max", {votes}, {{"axis", 1}, {"keep_axes", false}}),
                          classes));
    if (!has_shares && pairs == 1) {
      // One margin as the scores of both classes, in ONNX Runtime's order.
      given = node.call("concat", {-scores, scores}, {{"axis", 1}});
    }
    node.output(1, transformed_scores(node, given, transform));
  }

 private:
  void for_pairs(const auto& visit) const {
    std::int64_t pair = 0;
    for (std::int64_t first = 0; first < classes; ++first) {
      for (std::int64_t second = first + 1; second < classes; ++second)
        visit(pair++, first, second);
    }
  }

  // Row k of the coefficients weighs a vector against the k-th of the other classes.
  Var pair_weights() {
    const Reals given = node.reals("coefficients");
    if (size_of(given) != vector_count * (classes - 1)) {
      throw Error("SVMClassifier: the coefficients have the wrong number")
          .expected(vector_count * (classes - 1))
          .got(given.size());
    }
    Reals weights(static_cast<std::size_t>(vector_count * pairs));
    for_pairs([&](std::int64_t pair, std::int64_t first, std::int64_t second) {
      const auto put = [&](std::int64_t of, std::int64_t row) {
        for (std::int64_t k = 0; k < by_class[static_cast<std::size_t>(of)]; ++k) {
          const std::int64_t vector = starts[static_cast<std::size_t>(of)] + k;
          weights[static_cast<std::size_t>(vector * pairs + pair)] =
              given[static_cast<std::size_t>(row * vector_count + vector)];
        }
      };
      put(first, second - 1);
      put(second, first);
    });
    return constant_of_reals(node, weights, {vector_count, pairs});
  }

  Var pair_offsets() { return constant_of_reals(node, node.reals("rho"), {pairs}); }

  // Platt scaling of each pair, and pairwise coupling to class probabilities.
  Var shares(Var scores) {
    const Reals a = node.reals("prob_a"), b = node.reals("prob_b");
    const Var line =
        scores * constant_of_reals(node, a, {pairs}) + constant_of_reals(node, b, {pairs});
    const Var share = node.call("sigmoid", {-line});
    const Var held = node.call(
        "clip", {share, node.build.scalar(1e-7, share), node.build.scalar(1 - 1e-7, share)});
    return node.call("pairwise_coupling", {held}, {{"classes", classes}});
  }

  NodeImport& node;
  std::vector<std::int64_t> by_class, starts;
  std::int64_t classes, vector_count = 0, pairs = 0;
};

void import_svm_classifier(NodeImport& node) {
  if (!node.integers("vectors_per_class").empty()) return PairwiseClassifier(node).run();
  // Without support vectors the coefficients are a linear model's, one row per class.
  const auto classes = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(std::max(node.texts("classlabels_strings").size(),
                                            node.integers("classlabels_ints").size())));
  const Reals weights = node.reals("coefficients"), rho = node.reals("rho");
  if (rho.empty() || size_of(weights) % classes != 0) {
    throw Error("SVMClassifier: the coefficients do not come out even")
        .got(weights.size(), " coefficients of ", classes, " classes");
  }
  const Var rows = constant_of_reals(node, weights, {classes, size_of(weights) / classes});
  const Var scores = kernel_matrix(node, kernel_of(node), feature_rows(node), rows) + rho[0];
  node.output(0,
              labels_at(node, node.call("arg_max", {scores}, {{"axis", 1}, {"keep_axes", false}}),
                        classes));
  node.output(1, transformed_scores(node, scores, node.text("post_transform", "NONE")));
}

constexpr Handler svm_table[] = {
    {"SVMClassifier", import_svm_classifier, "ai.onnx.ml"},
    {"SVMRegressor", import_svm_regressor, "ai.onnx.ml"},
};

}  // namespace

std::span<const Handler> svm_handlers() { return svm_table; }

}  // namespace tenon::frontends::onnx
