#pragma once

#include "base/communicator.h"
#include "ops/families/rank_sum.h"

#include <cstddef>
#include <span>

namespace tenon::distributed {

/// All-gather of a tensor: equal parts held by ranks `stride` apart, and the destination of the
/// whole on each rank. Padding of the last parts is not sent.
struct JoinedParts {
  /// this rank's part; may already be in its final place
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::size_t part_bytes = 0, whole_bytes = 0;
  int ranks = 1, stride = 1;
};

/// Gathers tensors on all ranks: reads the parts directly from the other ranks' memory if it is
/// visible, all at once; otherwise by messages.
void join_parts(std::span<const JoinedParts> joined, Communicator& ranks, RankMemory& memory);

}  // namespace tenon::distributed
