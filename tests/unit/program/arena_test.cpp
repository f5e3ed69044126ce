#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "program/arena.h"
#include "program/extent.h"

namespace tenon {
namespace {

TEST(Extent, IsComputedFromSymbols) {
  // floor((s - 1) / 2) + 1
  const Extent less = Extent::combined(Extent::Op::Add, Extent::symbol(0), -1);
  const Extent half = Extent::combined(Extent::Op::FloorDivide, less, 2);
  const Extent count = Extent::combined(Extent::Op::Add, half, 1);
  const std::int64_t seven[] = {7}, zero[] = {0};
  EXPECT_EQ(count.value(seven), 4);
  EXPECT_EQ(count.value(zero), 0);  // rounds down, not to zero
  EXPECT_EQ(to_string(count), "((($0 + -1) / 2) + 1)");
}

TEST(Extent, RefusesWhatDoesNotFit) {
  const Extent square = Extent::combined(Extent::Op::Multiply, Extent::symbol(0), Extent::symbol(0));
  const std::int64_t huge[] = {std::int64_t{1} << 40}, zero[] = {0};
  EXPECT_THROW(square.value(huge), Error);
  EXPECT_THROW(Extent::combined(Extent::Op::FloorDivide, 1, Extent::symbol(0)).value(zero), Error);
}

TEST(Arena, KeepsWhatIsAliveApart) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<ArenaRequest> requests;
    for (int k = 0; k < 30; ++k) {
      const auto first = static_cast<std::uint32_t>(random() % 20);
      requests.push_back({random() % 1000, first, first + static_cast<std::uint32_t>(random() % 6)});
    }
    const ArenaPlan plan = plan_arena(requests);
    std::uint64_t needed = 0;
    for (std::uint32_t step = 0; step < 26; ++step) {
      std::uint64_t alive = 0;
      for (const ArenaRequest& request : requests) {
        if (request.first <= step && step <= request.last) alive += request.bytes;
      }
      needed = std::max(needed, alive);
    }
    EXPECT_GE(plan.bytes, needed);
    for (std::size_t a = 0; a < requests.size(); ++a) {
      EXPECT_EQ(plan.offsets[a] % kArenaAlignment, 0u);
      EXPECT_LE(plan.offsets[a] + requests[a].bytes, plan.bytes);
      for (std::size_t b = 0; b < a; ++b) {
        const bool meet = requests[a].first <= requests[b].last && requests[b].first <= requests[a].last;
        const bool overlap = plan.offsets[a] < plan.offsets[b] + requests[b].bytes &&
                             plan.offsets[b] < plan.offsets[a] + requests[a].bytes;
        EXPECT_FALSE(meet && overlap && requests[a].bytes > 0 && requests[b].bytes > 0);
      }
    }
  }
}

}  // namespace
}  // namespace tenon
