#include "ir/assumptions.h"
#include "ops/definition/evaluation.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"
#include "ops/families/matrices.h"

#include <cmath>

namespace tenon::inline ops::inverse_op {
namespace {

TensorType infer(const NoAttrs&, const OperandTypes& in) {
  const TensorType& x = in["x"];
  if (!is_float(x.dtype)) throw Error("inverse: x must hold floating numbers").got(x);
  if (x.rank() < 2 || !assume_equal(x.dims[x.rank() - 1], x.dims[x.rank() - 2])) {
    throw Error("inverse: the last two axes must span square matrices").got(x);
  }
  return x;
}

// Gauss-Jordan elimination of [matrix, unit matrix]; partial pivoting keeps the error small.
// Returns false for a singular matrix.
bool invert(std::vector<double> matrix, std::size_t size, std::span<double> inverse) {
  std::ranges::fill(inverse, 0.0);
  for (std::size_t k = 0; k < size; ++k) inverse[k * size + k] = 1;
  const auto swap_rows = [&](std::span<double> rows, std::size_t a, std::size_t b) {
    for (std::size_t k = 0; k < size; ++k) std::swap(rows[a * size + k], rows[b * size + k]);
  };
  for (std::size_t column = 0; column < size; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column + 1; row < size; ++row) {
      if (std::abs(matrix[row * size + column]) > std::abs(matrix[pivot * size + column]))
        pivot = row;
    }
    if (matrix[pivot * size + column] == 0) return false;
    swap_rows(matrix, pivot, column);
    swap_rows(inverse, pivot, column);
    const double divisor = matrix[column * size + column];
    for (std::size_t k = 0; k < size; ++k) {
      matrix[column * size + k] /= divisor;
      inverse[column * size + k] /= divisor;
    }
    for (std::size_t row = 0; row < size; ++row) {
      const double factor = matrix[row * size + column];
      if (row == column || factor == 0) continue;
      for (std::size_t k = 0; k < size; ++k) {
        matrix[row * size + k] -= factor * matrix[column * size + k];
        inverse[row * size + k] -= factor * inverse[column * size + k];
      }
    }
  }
  return true;
}

void evaluate(const NoAttrs&, Evaluation& op) {
  const Tensor& x = op.tensor("x");
  const std::int64_t size = square_size("inverse", x);
  Tensor y(x.dtype(), x.shape());
  const std::vector<double> elements = x.reals();
  std::vector<double> inverse(static_cast<std::size_t>(size * size));
  for (std::int64_t begin = 0; begin < x.size(); begin += size * size) {
    const auto first = elements.begin() + begin;
    if (!invert({first, first + size * size}, static_cast<std::size_t>(size), inverse)) {
      throw Error("inverse: a matrix is singular").got("number ", begin / (size * size));
    }
    for (std::int64_t k = 0; k < size * size; ++k)
      y.set_real(begin + k, inverse[static_cast<std::size_t>(k)]);
  }
  op.set("y", std::move(y));
}

// From x·y = I follows dy = -y·dx·y.
void gradient(const NoAttrs&, Gradient& op) {
  Builder& build = op.build();
  const Var y = with_last_axes_swapped(build, op.result("y"));
  const Var left = build.call("matmul", {y, op.upstream("y")});
  op.add("x", -build.call("matmul", {left, y}));
}

}  // namespace

TENON_DEFINE_OP(inverse) = OpSpec<NoAttrs>{
    .name = "inverse",
    .summary = "the inverses of the square matrices over the last two axes",
    .operands = {"x"},
    .results = {"y"},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = gradient,
    .layout = logical_order(),
};

}  // namespace tenon::inline ops::inverse_op
