#pragma once

#include "ir/constant.h"

#include <optional>

namespace tenon::passes::scales {

/// Bounds on the magnitudes of the elements of a constant.
struct Magnitudes {
  /// of the nonzero elements; infinity if all are zero
  double least = 0;
  double greatest = 0;
};
/// Returns exact bounds for stored elements and conservative ones for seeded elements. Returns
/// nullopt if an element is or may be infinite or NaN.
std::optional<Magnitudes> magnitudes_of(const Constant& constant);

/// Range of the positive numbers of a float type.
struct MagnitudeLimits {
  double least = 0;
  double greatest = 0;
};
MagnitudeLimits limits_of(DType dtype);

}  // namespace tenon::passes::scales
