#pragma once

#include "nests/loop_nest.h"

#include <string_view>

namespace tenon::nests {

struct SplitLoop {
  std::size_t outer = 0, inner = 0;
};

/// Strip-mines a loop into an outer loop and an inner one of `size` positions. Legal for every loop
/// without a limit, since the order of iterations is unchanged. If the extent is not a multiple,
/// the inner loop gets a limit. The outer loop is named like the original with `mark` appended, the
/// inner one with "i".
SplitLoop split(LoopNest& nest, Block& block, std::size_t loop, std::int64_t size,
                std::string_view mark = "o");

/// Loop partitioning: splits a loop into two consecutive ones, the first with `position` positions.
/// Legal for every loop without a limit and of larger constant extent. The first keeps its id;
/// returns the id of the second.
std::size_t split_at(LoopNest& nest, Block& block, std::size_t loop, std::int64_t position);

}  // namespace tenon::nests
