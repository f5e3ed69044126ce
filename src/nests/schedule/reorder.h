#pragma once

#include "nests/loop_nest.h"

#include <vector>

namespace tenon::nests {

/// Puts loops that stand directly in each other into another order, outermost first; each of them
/// is named once. May be applied where all are independent, or all are the loops of one fold whose
/// order is free (a sum, an extreme), and no limit depends on a loop that would stand inside it.
void reorder(Block& block, const std::vector<std::size_t>& loops);

}  // namespace tenon::nests
