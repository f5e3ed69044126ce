#pragma once

#include "nests/loop_nest.h"

namespace tenon::nests {

/// Collapses two perfectly nested loops into one. Legal if neither has a limit, and every load and
/// store either is contiguous over both (adjacent axes; the first advances by one per outer
/// iteration, the second has the inner loop's extent) or depends on neither, without bounds checks.
/// Returns whether it was legal; otherwise the nest is unchanged.
bool collapse(LoopNest& nest, std::size_t outer, std::size_t inner);

}  // namespace tenon::nests
