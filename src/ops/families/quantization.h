#pragma once

#include "expr/expr.h"
#include "ops/definition/operand_types.h"

namespace tenon::inline ops {

/// Quantization granularity: per tensor, per channel along `axis`, or, with a `block_size`, per
/// block of that many positions along it.
struct Granularity {
  std::int64_t axis = 1;
  std::int64_t block_size = 0;
};

/// Throws Error if the operands `scale` and `zero_point` (optional) do not fit `x`.
void require_granularity(const OperandTypes& in, const Granularity& granularity);

/// Expands a scale or zero point to a shape that broadcasts over `x`.
Expr spread(const Expr& parameter, const Expr& x, const Granularity& granularity);

/// Returns the dtype that quantization to and from `dtype` computes in: f64 for f64, else f32.
DType computing_dtype(DType dtype);

}  // namespace tenon::inline ops
