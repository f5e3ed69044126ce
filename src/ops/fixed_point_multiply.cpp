#include "ops/definition/elementwise.h"

#include <algorithm>

namespace tenon::inline ops::fixed_point_multiply_op {
namespace {

struct Attrs {
  std::int64_t multiplier = 0;
  std::int64_t shift = 0;
};

constexpr std::int64_t kFractionBits = 31;  // the multiplier counts units of 2^-31

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType& x = in["x"];
  if (x.dtype != DType::I32 && x.dtype != DType::I64) {
    throw Error("fixed_point_multiply: 'x' must hold integers of 32 or 64 bits").got(x);
  }
  if (attrs.shift < -kFractionBits || attrs.shift > kFractionBits) {
    throw Error("fixed_point_multiply: the shift is out of range")
        .expected(-kFractionBits, " to ", kFractionBits)
        .got(attrs.shift);
  }
  if (attrs.multiplier < 0 || attrs.multiplier >> kFractionBits != 0) {
    throw Error("fixed_point_multiply: the multiplier is no fraction of 2^31")
        .expected("0 to 2^31 - 1")
        .got(attrs.multiplier);
  }
  return x;
}

// The product has up to 62 bits. Adding half of the last kept place before the shift rounds halves
// up.
void lower(const Attrs& attrs, Lowering& op) {
  const std::int64_t left = std::max<std::int64_t>(attrs.shift, 0);
  const std::int64_t right = kFractionBits + std::max<std::int64_t>(-attrs.shift, 0);
  Expr wide = cast(op.operand("x"), DType::I64);
  if (left > 0) wide = apply(BinaryOp::ShiftLeft, wide, integer(left));
  const Expr sum = wide * integer(attrs.multiplier) + integer(std::int64_t{1} << (right - 1));
  const Expr quotient = apply(BinaryOp::ShiftRight, sum, integer(right));
  op.define("y", cast(cast(quotient, DType::I32), op.result_type("y").dtype));
}

}  // namespace

TENON_DEFINE_OP(fixed_point_multiply) = OpSpec<Attrs>{
    .name = "fixed_point_multiply",
    .summary = "x * multiplier * 2^(shift - 31) in integers, halves rounded up",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"multiplier", &Attrs::multiplier, required}, {"shift", &Attrs::shift, required}},
    .infer = infer,
    .lower = lower,
    .gradient = not_differentiable("it rounds to integers"),
    .layout = any_layout(),
    .precision = Precision::Integer,
    .examples = {"x: i32 a b; multiplier = 1610612736; shift = -2"},
};

}  // namespace tenon::inline ops::fixed_point_multiply_op
