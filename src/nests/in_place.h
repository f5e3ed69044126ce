#pragma once

#include "nests/loop_nest.h"

namespace tenon::nests {

/// Whether a result of the nest may lie where an operand lies: each element is written once, by the
/// only store to what the kernel is given, and whatever is read of the operand is read at the
/// coordinates of that store, before it, in the same turn of all loops.
bool may_overwrite(const LoopNest& nest, std::size_t result, std::size_t operand);

}  // namespace tenon::nests
