#include "expr/lowering.h"
#include "expr/random_numbers.h"
#include "ops/definition/elements.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/operand_limits.h"

namespace tenon::inline ops::bernoulli_op {
namespace {

struct Attrs {
  std::optional<DType> dtype;
  std::int64_t seed = 0;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  require_elements(in, "x", floats);
  if (attrs.dtype) require_numbers("bernoulli", "dtype", *attrs.dtype);
  return {attrs.dtype.value_or(in["x"].dtype), in["x"].dims, in["x"].layout};
}

void lower(const Attrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Expr draw = uniform_numbers(x.dims(), attrs.seed, 0);
  op.define("y", cast(draw < cast(x, DType::F32), op.result_type("y").dtype));
}

}  // namespace

TENON_DEFINE_OP(bernoulli) = OpSpec<Attrs>{
    .name = "bernoulli",
    .summary = "1 with probability x, else 0; the draws follow from `seed`",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"dtype", &Attrs::dtype}, {"seed", &Attrs::seed}},
    .infer = infer,
    .lower = lower,
    .gradient = not_differentiable("it draws whole numbers"),
    .is_random = true,
};

}  // namespace tenon::inline ops::bernoulli_op
