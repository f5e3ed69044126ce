#pragma once

#include "nests/loop_nest.h"

namespace tenon::nests {

/// Returns whether a result of the nest may share memory with an operand: each element is written
/// once, by one store or by several disjoint ones, and every load of the operand reads the
/// coordinates of such a store, earlier in the same iteration of all loops.
bool may_overwrite(const LoopNest& nest, std::size_t result, std::size_t operand);

}  // namespace tenon::nests
