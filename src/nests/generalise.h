#pragma once

#include "nests/loop_nest.h"

#include <optional>

namespace tenon::nests {

/// A nest that is given its numbers when it runs.
struct GeneralNest {
  LoopNest nest;
  /// of the extents that it has more than the nest it was made of
  std::vector<std::int64_t> numbers;
};

/// The nest with extents of loops and of what is read and written, and numbers added to
/// coordinates, as extents that it is given: nests that differ in these alone become the same.
/// Nothing where such numbers decide how a nest is written: tiles, buffers of its own, coordinates
/// that are checked.
std::optional<GeneralNest> generalised(const LoopNest& nest);

}  // namespace tenon::nests
