#include "expr/fourier.h"

#include <numbers>

namespace tenon::inline expr {

ComplexExpr rotated_by(const ComplexExpr& x, const Expr& frequency, const Expr& time,
                       const Dim& length, bool inverse) {
  // Reduces the phase modulo full turns in exact integers.
  const Expr part = cast(mod(frequency * time, length), DType::F64);
  const Expr angle = part * (2 * std::numbers::pi) / cast(extent_expr(length), DType::F64);
  const Expr cosine = cos(angle);
  const Expr sine = inverse ? sin(angle) : -sin(angle);
  if (!x.imaginary.is_defined()) return {x.real * cosine, x.real * sine};
  return {x.real * cosine - x.imaginary * sine, x.real * sine + x.imaginary * cosine};
}

}  // namespace tenon::inline expr
