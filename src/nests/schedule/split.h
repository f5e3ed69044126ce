#pragma once

#include "nests/loop_nest.h"

#include <string_view>

namespace tenon::nests {

struct SplitLoop {
  std::size_t outer = 0, inner = 0;
};

/// One loop becomes two, the inner one of `size` positions. May be applied to every loop that has
/// no limit: the order of its passes stays. Where the extent is no multiple the inner loop of the
/// last block has a limit. The outer loop is called as it was with `mark` behind, the inner one
/// with "i".
SplitLoop split(LoopNest& nest, Block& block, std::size_t loop, std::int64_t size,
                std::string_view mark = "o");

/// One loop becomes two that follow each other, the first of `position` positions. May be applied
/// to every loop that has no limit and more positions than that, a number of them. The first keeps
/// its number; gives that of the second.
std::size_t split_at(LoopNest& nest, Block& block, std::size_t loop, std::int64_t position);

}  // namespace tenon::nests
