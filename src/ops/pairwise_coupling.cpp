#include "ir/assumptions.h"
#include "ops/definition/elements.h"
#include "ops/definition/evaluation.h"
#include "ops/definition/op_spec.h"

#include <algorithm>
#include <cmath>

namespace tenon::inline ops::pairwise_coupling_op {
namespace {

struct Attrs {
  std::int64_t classes = 0;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType& x = require_elements(in, "x", floats);
  const std::int64_t pairs = attrs.classes * (attrs.classes - 1) / 2;
  constexpr std::int64_t kMaxClasses = 1 << 15;
  if (attrs.classes < 2 || attrs.classes > kMaxClasses || x.rank() != 2 ||
      !assume_equal(x.dims[1], pairs)) {
    throw Error("pairwise_coupling: there must be a column for every pair of classes")
        .expected("[rows, ", pairs, "]")
        .got("x: ", x, ", classes: ", attrs.classes);
  }
  return {x.dtype, {x.dims[0], attrs.classes}, {}};
}

using Matrix = std::vector<std::vector<double>>;

// Second method of Wu, Lin and Weng (2004): probabilities p that minimise the sum over pairs of
// (r[j][i] p[i] - r[i][j] p[j])^2, by fixed-point iteration.
std::vector<double> couple(const Matrix& r) {
  const std::size_t count = r.size();
  const int max_steps = std::max<int>(100, static_cast<int>(count));
  const double tolerance = 0.005 / static_cast<double>(count);
  Matrix q(count, std::vector<double>(count));
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j) {
      if (j == i) continue;
      q[i][i] += r[j][i] * r[j][i];
      q[i][j] = -r[j][i] * r[i][j];
    }
  }
  std::vector<double> p(count, 1 / static_cast<double>(count)), qp(count);
  for (int step = 0; step < max_steps; ++step) {
    double form = 0;
    for (std::size_t i = 0; i < count; ++i) {
      qp[i] = 0;
      for (std::size_t j = 0; j < count; ++j) qp[i] += q[i][j] * p[j];
      form += p[i] * qp[i];
    }
    double error = 0;
    for (double value : qp) error = std::max(error, std::abs(value - form));
    if (error < tolerance) break;
    for (std::size_t i = 0; i < count; ++i) {
      const double change = (form - qp[i]) / q[i][i], scale = 1 + change;
      p[i] += change;
      form = (form + change * (change * q[i][i] + 2 * qp[i])) / scale / scale;
      for (std::size_t j = 0; j < count; ++j) {
        qp[j] = (qp[j] + change * q[i][j]) / scale;
        p[j] /= scale;
      }
    }
  }
  return p;
}

void evaluate(const Attrs& attrs, Evaluation& op) {
  const Tensor& x = op.tensor("x");
  const auto count = static_cast<std::size_t>(attrs.classes);
  Tensor y(x.dtype(), {x.shape()[0], attrs.classes});
  std::int64_t source = 0, target = 0;
  for (std::int64_t row = 0; row < x.shape()[0]; ++row) {
    Matrix shares(count, std::vector<double>(count));
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = i + 1; j < count; ++j) {
        shares[i][j] = x.real_at(source++);
        shares[j][i] = 1 - shares[i][j];
      }
    }
    for (double share : couple(shares)) y.set_real(target++, share);
  }
  op.set("y", std::move(y));
}

}  // namespace

TENON_DEFINE_OP(pairwise_coupling) = OpSpec<Attrs>{
    .name = "pairwise_coupling",
    .summary =
        "shares of classes that fit best how each pair of them decides: x has a column for each "
        "pair, the first class's share",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"classes", &Attrs::classes, required}},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("it is found by iteration"),
    .layout = logical_order(),
};

}  // namespace tenon::inline ops::pairwise_coupling_op
