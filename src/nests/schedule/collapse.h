#pragma once

#include "nests/loop_nest.h"

namespace tenon::nests {

/// Two loops, one directly in the other, become one. May be applied where neither has a limit, and
/// every load and store runs through both in one piece (neighbouring axes, the first of which moves
/// by one with the outer loop, and the second has the inner loop's extent) or through neither,
/// without a check. Gives whether that holds; nothing is changed where it does not.
bool collapse(LoopNest& nest, std::size_t outer, std::size_t inner);

}  // namespace tenon::nests
