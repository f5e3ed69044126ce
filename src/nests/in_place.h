#pragma once

#include "nests/loop_nest.h"

namespace tenon::nests {

/// Whether a result of the nest may lie where an operand lies: each element is written once, by one
/// store or by several that never meet, and whatever is read of the operand is read at the
/// coordinates of such a store, before it, in the same turn of all loops.
bool may_overwrite(const LoopNest& nest, std::size_t result, std::size_t operand);

}  // namespace tenon::nests
