#pragma once

#include "nests/loop_nest.h"

#include <vector>

namespace tenon::nests {

/// Returns the loop in a block at any depth; null if absent. Of several loops with one id the
/// first.
Statement* find_loop(Block& block, std::size_t loop);
/// Returns the block that contains the loop.
Block* block_of(Block& block, std::size_t loop);

/// Returns a copy of the loop without its body.
Statement header_of(const Statement& loop);

/// Wraps a body in copies of these loops, the first outermost.
Block in_loops(const std::vector<const Statement*>& loops, Block body);

}  // namespace tenon::nests
