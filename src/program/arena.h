#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tenon::inline program {

/// A buffer of `bytes` that is alive from step `first` to step `last`, inclusive.
struct ArenaRequest {
  std::uint64_t bytes = 0;
  std::uint32_t first = 0, last = 0;
};
struct ArenaPlan {
  /// Offsets by request, multiples of `kArenaAlignment`.
  std::vector<std::uint64_t> offsets;
  std::uint64_t bytes = 0;
};
inline constexpr std::uint64_t kArenaAlignment = 64;

/// Assigns offsets such that buffers with overlapping live ranges do not overlap (greedy by size:
/// largest first, ties by longer lifetime; each at the lowest gap).
ArenaPlan plan_arena(std::span<const ArenaRequest> requests);

}  // namespace tenon::inline program
