#pragma once

#include "ir/constant.h"

#include <optional>

namespace tenon::scales {

/// How large and how small the elements of a constant can be, signs aside.
struct Magnitudes {
  /// of those that are not zero; infinity if all are
  double least = 0;
  double greatest = 0;
};
/// Exact for stored elements, bounds for those that a seed makes. Nothing where an element is
/// infinite or not a number, or might be.
std::optional<Magnitudes> magnitudes_of(const Constant& constant);

/// The positive numbers of a float type.
struct Limits {
  double least = 0;
  double greatest = 0;
};
Limits limits_of(DType dtype);

}  // namespace tenon::scales
