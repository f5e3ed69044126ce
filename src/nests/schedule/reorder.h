#pragma once

#include "nests/loop_nest.h"

#include <vector>

namespace tenon::nests {

/// Loop interchange: permutes perfectly nested loops into the given order, outermost first. Legal
/// if all are independent, or all belong to one reorderable fold (a sum, an extreme), and no limit
/// depends on a loop that would move inside it.
void reorder(Block& block, const std::vector<std::size_t>& loops);

}  // namespace tenon::nests
