#include "expr/lowering.h"
#include "expr/random_numbers.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/operand_limits.h"

namespace tenon::inline ops::random_uniform_op {
namespace {

struct Attrs {
  Dims shape;
  DType dtype = DType::F32;
  double low = 0, high = 1;
  std::int64_t seed = 0;
};

TensorType infer(const Attrs& attrs, const OperandTypes&) {
  require_numbers("random_uniform", "dtype", attrs.dtype);
  return {attrs.dtype, attrs.shape, {}};
}

void lower(const Attrs& attrs, Lowering& op) {
  const Expr unit = uniform_numbers(attrs.shape, attrs.seed, 0,
                                    attrs.dtype == DType::F64 ? DType::F64 : DType::F32);
  op.define("y", cast(unit * (attrs.high - attrs.low) + attrs.low, attrs.dtype));
}

}  // namespace

TENON_DEFINE_OP(random_uniform) = OpSpec<Attrs>{
    .name = "random_uniform",
    .summary = "numbers spread evenly between `low` and `high`; they follow from `seed`",
    .operands = {},
    .results = {"y"},
    .attrs = {{"shape", &Attrs::shape, dynamic_required},
              {"dtype", &Attrs::dtype},
              {"low", &Attrs::low},
              {"high", &Attrs::high},
              {"seed", &Attrs::seed}},
    .infer = infer,
    .lower = lower,
    .gradient = not_differentiable("it reads nothing"),
    .is_random = true,
    .examples = {"shape = a"},
};

}  // namespace tenon::inline ops::random_uniform_op
