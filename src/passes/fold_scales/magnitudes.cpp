#include "passes/fold_scales/magnitudes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::passes::scales {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The bits of nonnegative floats order like the floats. Uses signed integers, whose vector
// comparisons every x86-64 processor has.
template <class Bits, class Store>
std::optional<Magnitudes> stored_magnitudes(const Tensor& tensor) {
  constexpr Bits all = std::numeric_limits<Bits>::max();
  Bits least = all, greatest = 0;
  for (const Store stored : tensor.as<Store>()) {
    const Bits bits = static_cast<Bits>(static_cast<Bits>(stored) & all);
    greatest = bits > greatest ? bits : greatest;
    const Bits ranked = bits == 0 ? all : bits;
    least = ranked < least ? ranked : least;
  }
  Tensor ends(tensor.dtype(), {2});
  ends.as_mutable<Store>()[0] = static_cast<Store>(least);
  ends.as_mutable<Store>()[1] = static_cast<Store>(greatest);
  if (!std::isfinite(ends.real_at(1))) return {};
  return Magnitudes{greatest == 0 ? kInfinity : ends.real_at(0), ends.real_at(1)};
}

std::optional<Magnitudes> stored_magnitudes(const Tensor& tensor) {
  switch (info(tensor.dtype()).storage_bytes) {
    case 2:
      return stored_magnitudes<std::int16_t, std::uint16_t>(tensor);
    case 4:
      return stored_magnitudes<std::int32_t, std::uint32_t>(tensor);
    default:
      return stored_magnitudes<std::int64_t, std::uint64_t>(tensor);
  }
}

// A nonzero sum of two floats is at least one ulp of the smaller one.
double least_sum(double a, double b) {
  if (a == 0 || b == 0) return std::abs(a + b);
  return 0x1p-53 * std::min(std::abs(a), std::abs(b));
}

}  // namespace

MagnitudeLimits limits_of(DType dtype) {
  const double least = dtype == DType::F16    ? 0x1p-24
                       : dtype == DType::BF16 ? 0x1p-133
                       : dtype == DType::F32  ? 0x1p-149
                                              : std::numeric_limits<double>::denorm_min();
  return {least, highest_finite(dtype)};
}

std::optional<Magnitudes> magnitudes_of(const Constant& constant) {
  if (constant.kind() == Constant::Kind::Dense || constant.kind() == Constant::Kind::Splat) {
    return stored_magnitudes(constant.stored());
  }
  const double first = constant.first(), second = constant.second();
  double least = 0, greatest = 0;
  if (constant.kind() == Constant::Kind::Normal) {
    // The radius of Box-Muller is 0 or in [sqrt(2 * 2^-53), sqrt(2 * 53 * log 2)]; the cosine or
    // sine factor is 0 or at least 2^-54 in magnitude.
    least = least_sum(first, second * 0x1p-81);
    if (first != 0) least = std::min(least, std::abs(first));
    greatest = std::abs(first) + 8.6 * std::abs(second);
  } else {
    least = least_sum(first, (second - first) * 0x1p-53);
    if (first != 0) least = std::min(least, std::abs(first));
    if (second != 0) least = std::min(least, std::abs(second));
    greatest = std::max(std::abs(first), std::abs(second));
  }
  greatest *= 1.01;  // rounding to the type
  const MagnitudeLimits limits = limits_of(constant.dtype());
  if (!(greatest <= limits.greatest)) return {};
  return Magnitudes{std::max(least / 1.01, limits.least), greatest};
}

}  // namespace tenon::passes::scales
