#pragma once

#include "ops/expr.h"
#include "ops/operand_types.h"

namespace tenon {

/// How scales and zero points lie over a tensor: one for all of it, one for each position along
/// `axis`, or, with a `block_size`, one for each run of that many positions along it.
struct Granularity {
  std::int64_t axis = 1;
  std::int64_t block_size = 0;
};

/// Throws Error if the operands `scale` and `zero_point` (optional) do not fit `x`.
void require_granularity(const OperandTypes& in, const Granularity& granularity);

/// A scale or zero point brought to a shape that broadcasts over `x`.
Expr spread(const Expr& parameter, const Expr& x, const Granularity& granularity);

/// What quantization to and from `dtype` is computed in: f64 for f64, else f32.
DType computing_dtype(DType dtype);

}  // namespace tenon
