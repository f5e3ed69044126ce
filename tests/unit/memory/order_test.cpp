#include "memory/lifetimes.h"
#include "memory/order.h"
#include "memory/peak.h"
#include "memory/search.h"
#include "unit/memory/plan_checker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

namespace tenon::memory::order_test {
namespace {

// A few items that read other items' results, some of them in place.
Problem small_problem(std::uint32_t seed, std::uint32_t item_count) {
  std::mt19937 random(seed);
  Problem problem;
  problem.name = "small";
  for (std::uint32_t i = 0; i < item_count; ++i) {
    Item item;
    item.name = "item " + std::to_string(i);
    item.alternatives.push_back({1, random() % 4 == 0 ? random() % 30 : 0});
    for (std::uint32_t v = 0; v < problem.values.size(); ++v) {
      if (random() % 3 == 0) item.reads.push_back(v);
    }
    std::uint64_t bytes = 1 + random() % 50;
    if (!item.reads.empty() && random() % 2 == 0) {
      bytes = problem.values[item.reads[0]].bytes;
      item.may_share.emplace_back(i, item.reads[0]);
    }
    item.makes.push_back(i);
    problem.values.push_back({"value " + std::to_string(i), bytes, random() % 6 == 0, true});
    problem.items.push_back(std::move(item));
  }
  return problem;
}

std::uint64_t live_bytes(const Problem& problem, bool in_place) {
  return max_live_bytes(arena_buffers(lifetimes_of(problem, plain_events(problem), in_place)));
}

// Minimum over all orders.
std::uint64_t least_live_bytes(const Problem& problem, bool in_place) {
  const std::vector<std::uint32_t> makers = problem.makers();
  std::vector<std::uint32_t> order(problem.items.size());
  std::iota(order.begin(), order.end(), 0U);
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  do {
    std::vector<char> is_done(order.size(), 0);
    bool is_valid = true;
    for (const std::uint32_t i : order) {
      for (const std::uint32_t v : problem.items[i].reads) is_valid &= is_done[makers[v]] != 0;
      is_done[i] = 1;
    }
    if (!is_valid) continue;
    Problem other = problem;
    for (std::size_t k = 0; k < order.size(); ++k) other.items[k] = problem.items[order[k]];
    least = std::min(least, live_bytes(other, in_place));
  } while (std::ranges::next_permutation(order).found);
  return least;
}

TEST(MemoryOrder, IsBoundedAndMostlyOptimal) {
  int best = 0, at_bound = 0, improved = 0;
  constexpr int kCount = 120;
  for (std::uint32_t seed = 0; seed < kCount; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const bool in_place = seed % 3 != 0;
    const Problem problem = small_problem(seed, 7);
    ASSERT_NO_THROW(verify(problem));
    const Problem ordered = reordered(problem, in_place);
    ASSERT_NO_THROW(verify(ordered));
    const std::uint64_t least = least_live_bytes(problem, in_place);
    const std::uint64_t bound = order_bound_bytes(problem, in_place);
    const std::uint64_t found = live_bytes(ordered, in_place);
    ASSERT_LE(bound, least);
    ASSERT_LE(least, found);
    ASSERT_LE(found, live_bytes(problem, in_place));
    best += found == least ? 1 : 0;
    at_bound += bound == least ? 1 : 0;
    improved += found < live_bytes(problem, in_place) ? 1 : 0;
  }
  EXPECT_GE(best, kCount * 95 / 100);
  EXPECT_GE(at_bound, kCount / 3);
  EXPECT_GE(improved, kCount / 5);
}

// Two chains that end in a small sum run one after the other, regardless of the given order.
TEST(MemoryOrder, SerialisesChains) {
  Problem problem;
  const auto add = [&](std::vector<std::uint32_t> reads, std::uint64_t bytes) {
    const auto made = static_cast<std::uint32_t>(problem.values.size());
    problem.items.push_back({"item", std::move(reads), {made}, {}, true, {{1, 0}}, made});
    problem.values.push_back({"value", bytes, false, true});
    return made;
  };
  std::vector<std::uint32_t> ends;
  for (int chain = 0; chain < 4; ++chain) ends.push_back(add({}, 100));
  for (int link = 0; link < 3; ++link) {
    for (std::uint32_t& end : ends) end = add({end}, 100);
  }
  for (std::uint32_t& end : ends) end = add({end}, 1);
  add(ends, 1);
  EXPECT_GE(live_bytes(problem, true), 500u);
  EXPECT_LE(live_bytes(reordered(problem), true), 203u);
}

// The last item may not overwrite an output.
TEST(Lifetimes, OutputsAreNotOverwritten) {
  Problem problem;
  problem.values = {{"a", 8, true, true}, {"b", 8, true, true}};
  problem.items = {{"first", {}, {0}, {}, true, {{1, 0}}, 0},
                   {"last", {0}, {1}, {{1, 0}}, true, {{1, 0}}, 1}};
  ASSERT_NO_THROW(verify(problem));
  const Plan plan = planned(problem, plain_events(problem));
  EXPECT_EQ(testing::fault_in(problem, plan), "");
  EXPECT_EQ(plan.max_live_bytes, 16u);
  EXPECT_EQ(largest_working_set_bytes(problem), 16u);
  SearchOptions options;
  options.budget_bytes = 8;
  EXPECT_FALSE(search(problem, options).is_within_budget);
}

TEST(MemoryPeak, NamesTheStepAndLiveValues) {
  const Problem problem = small_problem(3, 7);
  const Plan plan = planned(problem, plain_events(problem));
  const Peak peak = peak_of(plan, problem);
  EXPECT_EQ(peak.bytes, plan.max_live_bytes);
  std::uint64_t sum = 0;
  for (const Peak::Alive& alive : peak.alive) sum += alive.bytes;
  EXPECT_EQ(sum, peak.bytes);
  EXPECT_TRUE(std::ranges::is_sorted(peak.alive, std::greater(), &Peak::Alive::bytes));
  EXPECT_TRUE(text_of(peak).starts_with("step '" + peak.item + "', where ")) << text_of(peak);
  EXPECT_EQ(peak_of({}, {}).alive.size(), 0u);
  EXPECT_EQ(live_bytes(reordered({}), true), 0u);
}

}  // namespace
}  // namespace tenon::memory::order_test
