#pragma once

#include "nests/loop_nest.h"

namespace tenon::nests {

/// Loop partitioning for causal attention: truncates loops over keys at the last key that the mask
/// leaves visible to any row of the tile. Matches scores `(key <= row) ? score : -inf` in stages
/// that exchange scores and shares through thread-local buffers. Legal if hidden keys contribute
/// nothing to folds: -inf to a maximum, 0 to a sum (a share of 0 times a value; a non-finite value
/// hidden from all rows of a tile then yields no NaN), and if no other statement reads elements of
/// hidden keys. Returns whether the nest changed.
bool trim_masked_loops(LoopNest& nest);

}  // namespace tenon::nests
