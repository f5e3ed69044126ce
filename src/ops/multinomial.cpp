#include "expr/lowering.h"
#include "expr/random_numbers.h"
#include "ops/definition/elements.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/operand_limits.h"

namespace tenon::inline ops::multinomial_op {
namespace {

struct Attrs {
  Dim sample_count = 1;
  DType dtype = DType::I32;
  std::int64_t seed = 0;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  require_elements(in, "x", floats);
  require_rank("multinomial", "x", in["x"], 2);
  require_numbers("multinomial", "dtype", attrs.dtype);
  // Drawing a sample requires at least one class.
  if (attrs.sample_count != Dim(0))
    require_at_least("multinomial", "the number of classes", in["x"].dims[1], 1);
  return {attrs.dtype, {in["x"].dims[0], attrs.sample_count}, {}};
}

// Gumbel-max trick: the class with the highest log-probability plus Gumbel noise is a sample.
void lower(const Attrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Dims dims = {x.extent(0), attrs.sample_count, x.extent(1)};
  const Space space(dims);
  const Expr noise = -log(-log(uniform_numbers(dims, attrs.seed, 0)));
  const Expr score = cast(x.at({space[0], space[2]}), DType::F32) + noise;
  op.define("y", cast(drop_axes(reduce(Reduction::ArgMax, score, {2}), {2}), attrs.dtype));
}

}  // namespace

TENON_DEFINE_OP(multinomial) = OpSpec<Attrs>{
    .name = "multinomial",
    .summary =
        "`sample_count` classes for each row of log-probabilities, drawn as they are likely; the "
        "draws "
        "follow from `seed`",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"sample_count", &Attrs::sample_count},
              {"dtype", &Attrs::dtype},
              {"seed", &Attrs::seed}},
    .infer = infer,
    .lower = lower,
    .gradient = not_differentiable("it draws classes"),
    .is_random = true,
    .examples = {"x: F a b; sample_count = 3"},
};

}  // namespace tenon::inline ops::multinomial_op
