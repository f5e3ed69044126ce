#include "expr/lowering.h"
#include "expr/random_numbers.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/operand_limits.h"

namespace tenon::inline ops::random_normal_op {
namespace {

struct Attrs {
  Dims shape;
  DType dtype = DType::F32;
  double mean = 0, deviation = 1;
  std::int64_t seed = 0;
};

TensorType infer(const Attrs& attrs, const OperandTypes&) {
  require_numbers("random_normal", "dtype", attrs.dtype);
  return {attrs.dtype, attrs.shape, {}};
}

void lower(const Attrs& attrs, Lowering& op) {
  const Expr standard =
      normal_numbers(attrs.shape, attrs.seed, attrs.dtype == DType::F64 ? DType::F64 : DType::F32);
  op.define("y", cast(standard * attrs.deviation + attrs.mean, attrs.dtype));
}

}  // namespace

TENON_DEFINE_OP(random_normal) = OpSpec<Attrs>{
    .name = "random_normal",
    .summary = "normally distributed numbers; they follow from `seed`",
    .operands = {},
    .results = {"y"},
    .attrs = {{"shape", &Attrs::shape, dynamic_required},
              {"dtype", &Attrs::dtype},
              {"mean", &Attrs::mean},
              {"deviation", &Attrs::deviation},
              {"seed", &Attrs::seed}},
    .infer = infer,
    .lower = lower,
    .gradient = not_differentiable("it reads nothing"),
    .is_random = true,
    .examples = {"shape = a b"},
};

}  // namespace tenon::inline ops::random_normal_op
