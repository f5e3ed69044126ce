#include "program/arena.h"

#include <algorithm>
#include <numeric>

namespace tenon {

ArenaPlan plan_arena(std::span<const ArenaRequest> requests) {
  const auto rounded = [](std::uint64_t bytes) {
    return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
  };
  std::vector<std::size_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const ArenaRequest &x = requests[a], &y = requests[b];
    if (x.bytes != y.bytes) return x.bytes > y.bytes;
    return x.last - x.first > y.last - y.first;
  });
  ArenaPlan plan;
  plan.offsets.assign(requests.size(), 0);
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t k : order) {
    const ArenaRequest& request = requests[k];
    const std::uint64_t bytes = rounded(request.bytes);
    std::uint64_t offset = 0;
    for (const std::size_t other : placed) {
      const ArenaRequest& there = requests[other];
      if (there.last < request.first || there.first > request.last) continue;
      if (plan.offsets[other] >= offset + bytes) break;
      offset = std::max(offset, plan.offsets[other] + rounded(there.bytes));
    }
    plan.offsets[k] = offset;
    plan.bytes = std::max(plan.bytes, offset + bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), k,
                                   [&](std::size_t a, std::size_t b) { return plan.offsets[a] < plan.offsets[b]; }),
                  k);
  }
  return plan;
}

}  // namespace tenon
