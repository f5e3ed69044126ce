#pragma once

#include "nests/loop_nest.h"

#include <vector>

namespace tenon::nests {

/// K-blocking: moves the `count` outermost loops of a reduction around the loops `inside`, with
/// partial sums in thread-local scratch:
///
///   for i { t = 0; for k { for r { t += … } } rest }
///
/// becomes
///
///   for i { s[i] = 0 }
///   for k { for i { t = s[i]; for r { t += … } s[i] = t } }
///   for i { t = s[i]; rest }
///
/// Legal for perfectly nested independent loops `inside`, the innermost of which contains only a
/// local, the loops of its fold and the epilogue. `lanes` is an enclosing loop that runs in vector
/// lanes; it becomes an axis of the buffer as well. The order of additions per element is
/// unchanged, so results are bit-identical.
void block_reduction(LoopNest& nest, Block& block, const std::vector<std::size_t>& inside,
                     std::size_t lanes, std::size_t count = 1);

}  // namespace tenon::nests
