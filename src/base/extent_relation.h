#pragma once

#include <cstdint>

namespace tenon::inline base {

/// Relation that two extents must have.
enum class ExtentRelation : std::uint8_t {
  Equal,
  /// a <= b
  AtMost,
  /// a is 1 or b: it broadcasts to b.
  OneOr,
  /// a == b, or one of them is 1.
  Broadcast,
};

}  // namespace tenon::inline base
