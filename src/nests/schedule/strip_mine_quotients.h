#pragma once

#include "nests/loop_nest.h"

namespace tenon::nests {

/// Strip-mines loops whose position is divided by a constant, as in `s[r // 32]` (group-wise
/// scales): with blocks of that length, `s[ro]` is invariant in the inner loop and the division
/// disappears. Applies to loops of folds, and to innermost store loops if the blocks have at least
/// half a vector of `lanes`, as in gathers of contiguous rows. Invariant factors of an f32 sum are
/// then applied once per block. Requires a constant extent that the length divides; the order of
/// iterations is unchanged.
void strip_mine_quotients(LoopNest& nest, std::int64_t lanes);

}  // namespace tenon::nests
