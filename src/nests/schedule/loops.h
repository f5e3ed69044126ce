#pragma once

#include "nests/loop_nest.h"

#include <vector>

namespace tenon::nests {

/// The loop in a block or in what stands inside; nothing where there is none. Of several that share
/// a number the first.
Statement* find_loop(Block& block, std::size_t loop);
/// The block in which that loop stands.
Block* block_of(Block& block, std::size_t loop);

/// The same loop with nothing in it.
Statement header_of(const Statement& loop);

/// What is done inside loops like these, the first outermost.
Block in_loops(const std::vector<const Statement*>& loops, Block body);

}  // namespace tenon::nests
