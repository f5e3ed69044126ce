#pragma once

#include "ops/expr.h"

namespace tenon {

struct ComplexExpr {
  Expr real, imaginary;
};

/// (real + i·imaginary)·exp(∓2πi·frequency·time/length), with plus if `inverse`. An imaginary part
/// that is not defined is zero. The positions are i64, the parts f64: frequencies that are not
/// there would else be drowned in rounding.
ComplexExpr turned(const ComplexExpr& x, const Expr& frequency, const Expr& time, const Dim& length,
                   bool inverse);

}  // namespace tenon
