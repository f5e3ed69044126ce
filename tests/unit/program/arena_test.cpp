#include "base/error.h"
#include "program/arena.h"
#include "program/extent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tenon::arena_test {
namespace {

TEST(Extent, EvaluatesSymbols) {
  // floor((s - 1) / 2) + 1
  const Extent less = Extent::combined(Extent::Op::Add, Extent::symbol(0), -1);
  const Extent half = Extent::combined(Extent::Op::FloorDivide, less, 2);
  const Extent count = Extent::combined(Extent::Op::Add, half, 1);
  const std::int64_t seven[] = {7}, zero[] = {0};
  EXPECT_EQ(count.value(seven), 4);
  EXPECT_EQ(count.value(zero), 0);  // rounds down, not to zero
  EXPECT_EQ(to_string(count), "((($0 + -1) / 2) + 1)");
}

TEST(Extent, RefusesOverflowAndDivisionByZero) {
  const Extent square =
      Extent::combined(Extent::Op::Multiply, Extent::symbol(0), Extent::symbol(0));
  const std::int64_t huge[] = {std::int64_t{1} << 40}, zero[] = {0};
  EXPECT_THROW(square.value(huge), Error);
  EXPECT_THROW(Extent::combined(Extent::Op::FloorDivide, 1, Extent::symbol(0)).value(zero), Error);
}

TEST(Arena, SeparatesLiveBuffers) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<ArenaRequest> requests;
    for (int k = 0; k < 30; ++k) {
      const auto first = static_cast<std::uint32_t>(random() % 20);
      requests.push_back(
          {random() % 1000, first, first + static_cast<std::uint32_t>(random() % 6)});
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
        const bool meet =
            requests[a].first <= requests[b].last && requests[b].first <= requests[a].last;
        const bool overlap = plan.offsets[a] < plan.offsets[b] + requests[b].bytes &&
                             plan.offsets[b] < plan.offsets[a] + requests[a].bytes;
        EXPECT_FALSE(meet && overlap && requests[a].bytes > 0 && requests[b].bytes > 0);
      }
    }
  }
}

// Naive version of `plan_arena`'s contract: largest buffer first, each at the lowest gap.
ArenaPlan plain_plan(const std::vector<ArenaRequest>& requests) {
  const auto rounded = [](std::uint64_t bytes) {
    return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
  };
  std::vector<std::size_t> order(requests.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const ArenaRequest &x = requests[a], &y = requests[b];
    return x.bytes != y.bytes ? x.bytes > y.bytes : x.last - x.first > y.last - y.first;
  });
  ArenaPlan plan;
  plan.offsets.assign(requests.size(), 0);
  std::vector<std::size_t> placed;
  for (const std::size_t k : order) {
    std::uint64_t offset = 0;
    const auto is_free = [&](std::size_t other) {
      const bool meet =
          requests[k].first <= requests[other].last && requests[other].first <= requests[k].last;
      return !meet || offset >= plan.offsets[other] + rounded(requests[other].bytes) ||
             plan.offsets[other] >= offset + rounded(requests[k].bytes);
    };
    while (!std::all_of(placed.begin(), placed.end(), is_free)) offset += kArenaAlignment;
    plan.offsets[k] = offset;
    plan.bytes = std::max(plan.bytes, offset + rounded(requests[k].bytes));
    placed.push_back(k);
  }
  return plan;
}

TEST(Arena, TakesTheLowestGap) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    const std::uint32_t steps = 1 + static_cast<std::uint32_t>(random() % 60);
    const std::uint32_t longest = 1 + static_cast<std::uint32_t>(random() % steps);
    const std::uint64_t sizes = 1 + random() % 12;
    std::vector<ArenaRequest> requests;
    for (int k = 0; k < 60; ++k) {
      const auto first = static_cast<std::uint32_t>(random() % steps);
      requests.push_back(
          {random() % sizes * 50, first,
           std::min(steps - 1, first + static_cast<std::uint32_t>(random() % longest))});
    }
    const ArenaPlan plan = plan_arena(requests), plain = plain_plan(requests);
    EXPECT_EQ(plan.bytes, plain.bytes);
    EXPECT_EQ(plan.offsets, plain.offsets);
  }
}

}  // namespace
}  // namespace tenon::arena_test
