#pragma once

#include <cstdint>

namespace tenon::passes::relay_quantize {

/// A positive number as multiplier / 2^31 * 2^shift, with the multiplier from 2^30 to 2^31.
struct FixedPoint {
  std::int64_t multiplier = 0;
  std::int64_t shift = 0;
};
/// Returns zeros for 0.
FixedPoint fixed_point_of(double number);

}  // namespace tenon::passes::relay_quantize
