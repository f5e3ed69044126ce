#pragma once

#include "codegen/nest_names.h"

#include <optional>

namespace tenon::codegen::cuda {

/// Requantization to a byte: round(x) + zero, saturated to the byte's range; NaN becomes 0. Does
/// not distinguish signed zeros.
struct RequantizedByte {
  Scalar x;
  /// Zero point as f32, within a byte's range.
  Scalar zero;

  bool is_from_zero() const;
};
std::optional<RequantizedByte> find_requantized_byte(const ScalarNode& node);

/// Dequantization of an unsigned byte in f32: x - zero.
struct DequantizedByte {
  /// The byte.
  Scalar x;
  /// Zero point as f32.
  Scalar zero;
};
std::optional<DequantizedByte> find_dequantized_byte(const ScalarNode& node);

/// x / divisor before a rounding to a byte. The quotient needs to be exact only up to
/// `kMostRounded`, to which x is clamped.
struct RequantizedQuotient {
  Scalar x;
  float lowest = 0, highest = 0;
  /// 1 / divisor rounded to nearest, and its remainder.
  float divisor = 1, inverse = 1, rest = 0;
};
std::optional<RequantizedQuotient> find_requantized_quotient(const Scalar& scalar);

}  // namespace tenon::codegen::cuda
