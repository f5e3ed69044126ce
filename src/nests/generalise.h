#pragma once

#include "nests/loop_nest.h"

#include <optional>

namespace tenon::nests {

/// A nest whose numbers are run-time arguments.
struct GeneralNest {
  LoopNest nest;
  /// Values of the additional extents.
  std::vector<std::int64_t> numbers;
};

/// Replaces constant extents of loops and views, and offsets of coordinates, by run-time extents:
/// nests that differ only in these numbers become equal. No value if such numbers determine the
/// code: tiles, scratch, checked coordinates.
std::optional<GeneralNest> generalised(const LoopNest& nest);

}  // namespace tenon::nests
