#pragma once

#include "codegen/nest_names.h"

#include <optional>

namespace tenon::codegen::cuda {

/// A byte that an f32 is rounded to, as quantization has it: round(x) + zero, then held to what the
/// byte can be; 0 of NaN. Zeros of both signs become one.
struct RoundedByte {
  Scalar x;
  /// an f32, no larger than a byte
  Scalar zero;

  bool is_from_zero() const;
};
std::optional<RoundedByte> find_rounded_byte(const ScalarNode& node);

/// A byte, without a sign, less a zero point, in f32: x - zero.
struct ByteDistance {
  /// the byte
  Scalar x;
  /// as above
  Scalar zero;
};
std::optional<ByteDistance> find_byte_distance(const ScalarNode& node);

/// x / divisor that is to be rounded to a byte, for which it need not be right beyond
/// `kMostRounded`: what x is held to.
struct RoundedQuotient {
  Scalar x;
  float lowest = 0, highest = 0;
  /// 1 / divisor, to nearest, and what is left of it
  float divisor = 1, inverse = 1, rest = 0;
};
std::optional<RoundedQuotient> find_rounded_quotient(const Scalar& scalar);

}  // namespace tenon::codegen::cuda
