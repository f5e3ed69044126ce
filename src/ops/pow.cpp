#include "ops/definition/elementwise.h"
#include "ops/definition/var_ops.h"

namespace tenon::inline ops::pow_op {
namespace {

TensorType infer(const NoAttrs&, const OperandTypes& in) {
  const TensorType& base = require_elements(in, "base", numbers);
  const TensorType& exponent = require_elements(in, "exponent", numbers);
  return broadcast_type("pow", base, exponent, base.dtype);
}

// Two different dtypes compute in a common wider dtype.
DType common_dtype(DType base, DType exponent) {
  if (base == exponent) return base;
  if (is_complex(base) || is_complex(exponent)) return DType::C128;
  if (is_integer(base) && is_integer(exponent)) return DType::I64;
  return DType::F64;
}

void lower(const NoAttrs&, Lowering& op) {
  const Expr base = op.operand("base"), exponent = op.operand("exponent");
  const DType common = common_dtype(base.dtype(), exponent.dtype());
  op.define("y", cast(pow(cast(base, common), cast(exponent, common)), base.dtype()));
}

// Omits the logarithm of a nonpositive base, at which the power is not a smooth function of the
// exponent.
void gradient(const NoAttrs&, Gradient& op) {
  const Var base = op.operand("base"), dy = op.upstream("y");
  const DType dtype = op.operand_type("base").dtype;
  const Var exponent = cast_to(op.operand("exponent"), dtype);
  const Var slope = exponent * call("pow", {base, exponent - 1.0});
  const Var is_constant = call("equal", {exponent, number(0, exponent)});
  op.add("base", dy * choose(is_constant, 0, slope));
  if (!is_float(op.operand_type("exponent").dtype)) return;
  const Var is_positive = is_greater(base, 0);
  const Var log = call("log", {choose(is_positive, base, 1)});
  op.add("exponent", cast_to(dy * op.result("y") * log, op.operand_type("exponent").dtype));
}

}  // namespace

TENON_DEFINE_OP(pow) = OpSpec<NoAttrs>{
    .name = "pow",
    .summary = "base to the power of exponent, broadcast, in the element type of base",
    .operands = {"base", "exponent"},
    .results = {"y"},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
};

}  // namespace tenon::inline ops::pow_op
