#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tenon {

/// A buffer that needs `bytes` of the arena from step `first` to step `last`, both included.
struct ArenaRequest {
  std::uint64_t bytes = 0;
  std::uint32_t first = 0, last = 0;
};
struct ArenaPlan {
  /// by request, multiples of `kArenaAlignment`
  std::vector<std::uint64_t> offsets;
  std::uint64_t bytes = 0;
};
inline constexpr std::uint64_t kArenaAlignment = 64;

/// Places buffers so that no two that are alive at once overlap: the largest first (the
/// longer-lived where equal), each into the lowest gap.
ArenaPlan plan_arena(std::span<const ArenaRequest> requests);

}  // namespace tenon
