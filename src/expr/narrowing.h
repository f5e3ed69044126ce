#pragma once

#include "expr/expr.h"
#include "ir/float_formats.h"

namespace tenon::inline expr {

/// Converts `x` to `dtype` with explicit rules for 8-bit floats: `overflow` for values out of
/// range, `rounding` for f8e8m0. Other dtypes convert like `cast`.
Expr narrow(const Expr& x, DType dtype, Overflow overflow,
            ScaleRounding rounding = ScaleRounding::Up);

}  // namespace tenon::inline expr
