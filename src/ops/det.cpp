#include "ir/assumptions.h"
#include "ops/definition/evaluation.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"
#include "ops/families/matrices.h"

#include <cmath>

namespace tenon::inline ops::det_op {
namespace {

TensorType infer(const NoAttrs&, const OperandTypes& in) {
  const TensorType& x = in["x"];
  if (x.rank() < 2 || !assume_equal(x.dims[x.rank() - 1], x.dims[x.rank() - 2])) {
    throw Error("det: the last two axes must span square matrices").got(x);
  }
  return {x.dtype, {x.dims.begin(), x.dims.end() - 2}, {}};
}

// Gaussian elimination; partial pivoting keeps the error small.
double determinant(std::vector<double> matrix, std::size_t size) {
  double result = 1;
  for (std::size_t column = 0; column < size; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column + 1; row < size; ++row) {
      if (std::abs(matrix[row * size + column]) > std::abs(matrix[pivot * size + column]))
        pivot = row;
    }
    if (matrix[pivot * size + column] == 0) return 0;
    if (pivot != column) {
      std::swap_ranges(matrix.begin() + static_cast<std::ptrdiff_t>(pivot * size),
                       matrix.begin() + static_cast<std::ptrdiff_t>((pivot + 1) * size),
                       matrix.begin() + static_cast<std::ptrdiff_t>(column * size));
      result = -result;
    }
    result *= matrix[column * size + column];
    for (std::size_t row = column + 1; row < size; ++row) {
      const double factor = matrix[row * size + column] / matrix[column * size + column];
      for (std::size_t k = column; k < size; ++k) {
        matrix[row * size + k] -= factor * matrix[column * size + k];
      }
    }
  }
  return result;
}

void evaluate(const NoAttrs&, Evaluation& op) {
  const Tensor& x = op.tensor("x");
  const std::int64_t size = square_size("det", x);
  Tensor y(x.dtype(), Shape(x.shape().begin(), x.shape().end() - 2));
  const std::vector<double> elements = x.reals();
  for (std::int64_t index = 0; index < y.size(); ++index) {
    const auto begin = elements.begin() + index * size * size;
    y.set_real(index, determinant({begin, begin + size * size}, static_cast<std::size_t>(size)));
  }
  op.set("y", std::move(y));
}

// Jacobi's formula: det(x) times the transposed inverse, which a singular matrix lacks.
void gradient(const NoAttrs&, Gradient& op) {
  Builder& build = op.build();
  const Var inverse = build.call("inverse", {op.operand("x")});
  const Var slope = build.call("unsqueeze", {op.upstream("y") * op.result("y")},
                               {{"axes", Attr::Integers{-2, -1}}});
  op.add("x", slope * with_last_axes_swapped(build, inverse));
}

}  // namespace

TENON_DEFINE_OP(det) = OpSpec<NoAttrs>{
    .name = "det",
    .summary = "the determinants of the square matrices over the last two axes",
    .operands = {"x"},
    .results = {"y"},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = gradient,
    .layout = logical_order(),
    .examples = {"x: F n m m"},
};

}  // namespace tenon::inline ops::det_op
