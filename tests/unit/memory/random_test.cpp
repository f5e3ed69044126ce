#include "memory/order.h"
#include "memory/search.h"
#include "unit/memory/plan_checker.h"
#include "unit/memory/random_problem.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tenon::memory::random_test {
namespace {

// TENON_RANDOM_PLANS=5000 requests a longer run.
std::uint64_t count() {
  const char* asked = std::getenv("TENON_RANDOM_PLANS");
  return asked != nullptr ? std::strtoull(asked, nullptr, 10) : 200;
}

// Budgets from half to all of the unplanned peak, with and without swapping and shared storages.
TEST(RandomPlans, EveryPlanPassesTheChecker) {
  std::size_t within = 0, swapped = 0, repeated = 0;
  for (std::uint64_t seed = 0; seed < count(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Problem problem = testing::random_problem(seed);
    ASSERT_NO_THROW(verify(problem));
    const bool in_place = seed % 5 != 0;
    const Plan given = planned(problem, plain_events(problem), {}, in_place);
    ASSERT_EQ(testing::fault_in(problem, given), "");
    ASSERT_GE(given.arena_bytes, given.max_live_bytes);
    problem = reordered(problem, in_place);
    ASSERT_NO_THROW(verify(problem));
    const Plan plain = planned(problem, plain_events(problem), {}, in_place);
    ASSERT_EQ(testing::fault_in(problem, plain), "");
    ASSERT_LE(plain.max_live_bytes, given.max_live_bytes);
    ASSERT_GE(plain.max_live_bytes, in_place ? largest_working_set_bytes(problem) : 0);

    SearchOptions options;
    options.budget_bytes = plain.max_live_bytes * (50 + seed % 50) / 100;
    options.may_swap = seed % 3 == 0;
    options.may_recompute = seed % 6 != 0;
    options.step_limit = 400;
    options.restarts = 1;
    options.in_place = in_place;
    const SearchResult result = search(problem, options);
    ASSERT_EQ(testing::fault_in(problem, result.plan), "");
    if (result.is_within_budget) {
      ++within;
      ASSERT_LE(result.plan.arena_bytes, options.budget_bytes);
    }
    for (const Event& event : result.plan.events) swapped += event.kind == Event::Kind::Out ? 1 : 0;
    repeated += result.plan.events.size() > problem.items.size() ? 1 : 0;
    ASSERT_EQ(parse_plan(print(result.plan, problem), "plan"), result.plan);
  }
  EXPECT_GT(within, count() / 8);
  EXPECT_GT(swapped, count() / 20);
  EXPECT_GT(repeated, count() / 8);
}

// The checker must detect planted faults.
TEST(RandomPlans, PlantedFaultsAreCaught) {
  std::size_t planted = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Problem problem = testing::random_problem(seed);
    const Plan plan = planned(problem, plain_events(problem));
    ASSERT_EQ(testing::fault_in(problem, plan), "");
    // Moves one of two storages with overlapping lifetimes onto the other.
    for (std::size_t x = 0; x < plan.blocks.size(); ++x) {
      for (std::size_t y = 0; y < x; ++y) {
        const ArenaBlock &a = plan.blocks[x], &b = plan.blocks[y];
        const bool meet = a.begin < b.end && b.begin < a.end && a.bytes > 0 && b.bytes > 0;
        // A result without readers may be overwritten later.
        if (!meet || a.instances.empty() || b.instances.empty()) continue;
        if (a.end - a.begin < 2 || b.end - b.begin < 2) continue;
        Plan moved = plan;
        moved.blocks[x].offset = b.offset;
        EXPECT_NE(testing::fault_in(problem, moved), "");
        ++planted;
      }
    }
    Plan without = plan;
    without.events.erase(without.events.begin());
    EXPECT_NE(testing::fault_in(problem, without), "");
    Plan larger = plan;
    larger.arena_bytes += 1;
    EXPECT_NE(testing::fault_in(problem, larger), "");
    Plan faster = plan;
    faster.seconds *= 0.9;
    EXPECT_NE(testing::fault_in(problem, faster), "");
    Plan swapped = plan;
    std::swap(swapped.events.front(), swapped.events.back());
    EXPECT_NE(testing::fault_in(problem, swapped), "");
  }
  EXPECT_GT(planted, 100u);
}

}  // namespace
}  // namespace tenon::memory::random_test
