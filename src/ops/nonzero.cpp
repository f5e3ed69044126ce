#include "ops/definition/evaluation.h"
#include "ops/definition/op_spec.h"

namespace tenon::inline ops::nonzero_op {
namespace {

TensorType infer(const NoAttrs&, const OperandTypes& in) {
  return {DType::I64, {static_cast<std::int64_t>(in["x"].rank()), in.unknown()}, {}};
}

bool is_zero(const Tensor& x, std::int64_t position) {
  if (x.dtype() == DType::String) return x.strings()[static_cast<std::size_t>(position)].empty();
  return x.complex_at(position) == std::complex<double>(0);
}

void evaluate(const NoAttrs&, Evaluation& op) {
  const Tensor& x = op.tensor("x");
  std::vector<std::int64_t> found;
  for (std::int64_t k = 0; k < x.size(); ++k) {
    if (!is_zero(x, k)) found.push_back(k);
  }
  const auto count = static_cast<std::int64_t>(found.size());
  Tensor y(DType::I64, {static_cast<std::int64_t>(x.rank()), count});
  for (std::int64_t column = 0; column < count; ++column) {
    std::int64_t rest = found[static_cast<std::size_t>(column)];
    for (std::size_t axis = x.rank(); axis-- > 0;) {
      y.set_integer(static_cast<std::int64_t>(axis) * count + column, rest % x.shape()[axis]);
      rest /= x.shape()[axis];
    }
  }
  op.set("y", std::move(y));
}

}  // namespace

TENON_DEFINE_OP(nonzero) = OpSpec<NoAttrs>{
    .name = "nonzero",
    .summary = "the positions of elements that are not zero: a row for each axis",
    .operands = {"x"},
    .results = {"y"},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("it gives positions"),
    .layout = logical_order(),
};

}  // namespace tenon::inline ops::nonzero_op
