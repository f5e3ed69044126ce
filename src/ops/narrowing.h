#pragma once

#include "ir/float_formats.h"
#include "ops/expr.h"

namespace tenon {

/// `x` converted to `dtype`, with a say over what happens at the edges of the 8-bit floats:
/// `overflow` for values too large for them, `rounding` for f8e8m0. Other dtypes convert as `cast`
/// does.
Expr narrow(const Expr& x, DType dtype, Overflow overflow,
            ScaleRounding rounding = ScaleRounding::Up);

}  // namespace tenon
