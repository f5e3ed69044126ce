#pragma once

#include "base/communicator.h"
#include "ops/rank_sum.h"

#include <cstddef>
#include <span>

namespace tenon {

/// Parts of a tensor, of one size, that ranks `stride` apart hold one behind another, and where the
/// whole of it goes on each. What fills up the last parts does not travel.
struct JoinedParts {
  /// this rank's part; may lie where it belongs
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::size_t part_bytes = 0, whole_bytes = 0;
  int ranks = 1, stride = 1;
};

/// Puts tensors together on all ranks: read from where the others have their parts if they can be
/// seen there, all at once; else by messages.
void join_parts(std::span<const JoinedParts> joined, Communicator& ranks, RankMemory& memory);

}  // namespace tenon
