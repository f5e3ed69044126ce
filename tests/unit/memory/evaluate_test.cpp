#include "memory/evaluate.h"
#include "unit/memory/random_problem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tenon::memory::evaluate_test {
namespace {

// Steps of one problem after another: enough values for blocks of several items.
Problem long_problem(std::uint64_t seed) {
  Problem whole;
  for (std::uint64_t part = 0; whole.values.size() < 1200; ++part) {
    Problem next = testing::random_problem(seed * 1000 + part);
    const auto shift = static_cast<std::uint32_t>(whole.values.size());
    for (Item& item : next.items) {
      for (std::uint32_t& v : item.reads) v += shift;
      for (std::uint32_t& v : item.makes) v += shift;
      for (auto& [result, operand] : item.may_share) {
        result += shift;
        operand += shift;
      }
    }
    whole.link = next.link;
    std::ranges::move(next.values, std::back_inserter(whole.values));
    std::ranges::move(next.items, std::back_inserter(whole.items));
  }
  return whole;
}

// Changes a choice step by step, keeps some steps, and compares every evaluation with one that
// starts anew.
void compare_walk(const Problem& problem, std::uint64_t seed, int steps) {
  std::mt19937_64 random(seed);
  const bool in_place = seed % 4 != 0;
  Evaluator walked(problem, in_place);
  std::vector<Residency> kept = walked.all_kept();
  ASSERT_FALSE(kept.empty());
  const std::uint64_t budget = largest_working_set_bytes(problem) * 2;
  for (int step = 0; step < steps; ++step) {
    std::vector<Residency> tried = kept;
    for (std::uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      const std::size_t pause = random() % kept.size();
      const bool swaps = problem.link && walked.may_swap(pause) && random() % 2 == 0;
      if (swaps) {
        tried[pause] = Residency::Offload;
      } else if (walked.may_recompute(pause)) {
        tried[pause] = static_cast<Residency>(random() % 3);
      }
    }
    const Evaluator::Outcome outcome = walked.evaluate(tried, budget);
    const std::vector<Event> events = walked.events();
    Evaluator anew(problem, in_place);
    const Evaluator::Outcome expected = anew.evaluate(tried, budget);
    ASSERT_EQ(outcome.seconds, expected.seconds);
    ASSERT_EQ(outcome.peak_bytes, expected.peak_bytes);
    ASSERT_EQ(events, anew.events());
    const bool has_copies = std::ranges::find(tried, Residency::Offload) != tried.end();
    if (!has_copies) {
      std::uint64_t live = 0;
      const std::vector<ArenaBlock> blocks = lifetimes_of(problem, events, in_place);
      for (std::uint32_t e = 0; e < events.size(); ++e) {
        std::uint64_t now = 0;
        for (const ArenaBlock& storage : blocks)
          now += storage.begin <= e && e < storage.end ? storage.bytes : 0;
        live = std::max(live, now);
      }
      ASSERT_EQ(outcome.peak_bytes, live);
    }
    if (random() % 2 == 0) continue;
    walked.keep();
    kept = tried;
  }
}

TEST(Evaluator, IncrementalOutcomesEqualThoseOfANewEvaluator) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    compare_walk(testing::random_problem(seed), seed, 60);
  }
}

TEST(Evaluator, BlocksOfSeveralItemsEvaluateLikeSingleItems) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) compare_walk(long_problem(seed), seed, 20);
}

}  // namespace
}  // namespace tenon::memory::evaluate_test
