#include "expr/narrowing.h"

#include <cmath>
#include <limits>

namespace tenon::inline expr {
namespace {

// Least magnitude that overflows. A tie rounds to the even neighbour, which is finite only for
// f8e4m3fn.
bool is_tie_finite(DType dtype) { return dtype == DType::F8E4M3FN; }
double first_overflow(DType dtype) {
  switch (dtype) {
    case DType::F8E4M3FN:
      return 464;
    case DType::F8E4M3FNUZ:
      return 248;
    default:
      return 61440;  // both e5m2 formats
  }
}

Expr narrow_eight_bits(const Expr& x, DType dtype, Overflow overflow) {
  const Expr finite = cast(x, dtype);
  if (overflow == Overflow::Saturate) return finite;
  const Expr size = abs(x);
  const double bound = first_overflow(dtype);
  const Expr is_over = is_tie_finite(dtype) ? size > bound : size >= bound;
  const double infinity = std::numeric_limits<double>::infinity();
  if (dtype == DType::F8E5M2) {
    return select(is_over, select(x < 0.0, literal(dtype, -infinity), infinity), finite);
  }
  return select(is_over, std::numeric_limits<double>::quiet_NaN(), finite);
}

// A cast to f8e8m0 rounds up to a power of two; the power below is half of it.
Expr narrow_scale(const Expr& x, Overflow overflow, ScaleRounding rounding) {
  const DType dtype = DType::F8E8M0;
  Expr scale = cast(x, dtype);
  if (rounding != ScaleRounding::Up) {
    const Expr size = abs(x), up = cast(scale, x.dtype());
    const double bound = rounding == ScaleRounding::Down ? 1.0 : 0.75;
    scale = cast(select(size < up * bound, up * 0.5, up), dtype);
  }
  if (overflow == Overflow::Saturate) return scale;
  const double highest = highest_finite(dtype);
  const Expr is_over = rounding == ScaleRounding::Up        ? abs(x) > highest
                       : rounding == ScaleRounding::Nearest ? abs(x) >= 1.5 * highest
                                                            : apply(UnaryOp::IsPositiveInf, abs(x));
  return select(is_over, std::numeric_limits<double>::quiet_NaN(), scale);
}

}  // namespace

Expr narrow(const Expr& x, DType dtype, Overflow overflow, ScaleRounding rounding) {
  if (x.dtype() == dtype) return x;
  if (dtype == DType::F8E8M0) {
    return is_float(x.dtype()) ? narrow_scale(cast(x, DType::F32), overflow, rounding)
                               : cast(x, dtype);
  }
  switch (dtype) {
    case DType::F8E4M3FN:
    case DType::F8E4M3FNUZ:
    case DType::F8E5M2:
    case DType::F8E5M2FNUZ:
      return narrow_eight_bits(cast(x, DType::F32), dtype, overflow);
    default:
      return cast(x, dtype);
  }
}

}  // namespace tenon::inline expr
