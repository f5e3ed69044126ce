#pragma once

#include "expr/expr.h"

namespace tenon::inline expr {

struct ComplexExpr {
  Expr real, imaginary;
};

/// Returns (real + i·imaginary)·exp(∓2πi·frequency·time/length), with plus if `inverse`. An
/// undefined imaginary part is zero. The positions are i64, the parts f64: otherwise rounding noise
/// would mask absent frequencies.
ComplexExpr rotated_by(const ComplexExpr& x, const Expr& frequency, const Expr& time,
                       const Dim& length, bool inverse);

}  // namespace tenon::inline expr
