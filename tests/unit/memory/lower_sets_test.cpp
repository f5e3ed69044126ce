#include "base/error.h"
#include "memory/lower_sets.h"
#include "memory/order.h"
#include "unit/error_text.h"
#include "unit/memory/plan_checker.h"
#include "unit/needs_documents.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace tenon::memory::lower_sets_test {
namespace {

Problem unet(bool is_fused = false) {
  std::ifstream file("tests/fixtures/unet_chainer.graph.txt");
  std::ostringstream text;
  text << file.rdbuf();
  const auto document = documents::find_document_format("chainer")->read(text.str(), "unet");
  return reordered(document->recorded_run({.is_fused = is_fused}, {})->problem);
}

SearchResult planned_by(Method method, const Problem& problem, double budget_bytes) {
  SearchOptions options;
  options.budget_bytes = static_cast<std::uint64_t>(budget_bytes);
  SearchResult result = method == Method::Search ? search(problem, options)
                                                 : plan_by_lower_sets(problem, options, method);
  EXPECT_EQ(testing::fault_in(problem, result.plan), "") << name_of(method);
  return result;
}

double overhead(const SearchResult& result, const Problem& problem) {
  return result.plan.seconds / problem.seconds() - 1;
}

// A chain of ten forward items that the backward pass reads again: its best blocks are known.
Problem chain() {
  Problem problem;
  for (std::uint32_t k = 0; k < 10; ++k) {
    problem.values.push_back({"y" + std::to_string(k), 100, false, true});
    Item item;
    item.name = "forward " + std::to_string(k);
    if (k > 0) item.reads = {k - 1};
    item.makes = {k};
    item.may_repeat = true;
    item.alternatives.push_back({1, 0});
    problem.items.push_back(item);
  }
  for (std::uint32_t k = 10; k-- > 0;) {
    problem.values.push_back({"g" + std::to_string(k), 1, k == 0, true});
    Item item;
    item.name = "backward " + std::to_string(k);
    item.reads = {k};
    if (k < 9) item.reads.push_back(static_cast<std::uint32_t>(problem.values.size() - 2));
    item.makes = {static_cast<std::uint32_t>(problem.values.size() - 1)};
    item.alternatives.push_back({1, 0});
    problem.items.push_back(item);
  }
  verify(problem);
  return problem;
}

TEST(LowerSets, RecomputesBlocksOfAChainOnce) {
  const Problem problem = chain();
  for (const Method method : {Method::Approximate, Method::Exact, Method::Chen}) {
    const SearchResult result = planned_by(method, problem, 620);
    EXPECT_TRUE(result.is_within_budget) << name_of(method);
    // At most everything except the last block, which is still resident.
    EXPECT_LT(result.plan.seconds, 29) << name_of(method);
    EXPECT_GT(result.plan.seconds, 20) << name_of(method);
    const SearchResult all = planned_by(method, problem, 1e9);
    EXPECT_EQ(all.plan.seconds, 20) << name_of(method);
    EXPECT_FALSE(planned_by(method, problem, 150).is_within_budget) << name_of(method);
  }
}

// Results of the paper's methods on its own network, compared with a search per value.
TEST(LowerSets, SearchBeatsLowerSetsOnTheirNetwork) {
  NEEDS_DOCUMENTS();
  const Problem problem = unet();
  const SearchResult ours = planned_by(Method::Search, problem, 5e9);
  for (const Method method : {Method::Approximate, Method::Exact}) {
    const SearchResult theirs = planned_by(method, problem, 5e9);
    ASSERT_TRUE(theirs.is_within_budget) << name_of(method);
    EXPECT_GT(overhead(theirs, problem), overhead(ours, problem)) << name_of(method);
    EXPECT_LT(overhead(theirs, problem), 0.07) << name_of(method);
  }
  EXPECT_FALSE(planned_by(Method::Approximate, problem, 3.5e9).is_within_budget);
  EXPECT_FALSE(planned_by(Method::Chen, problem, 5e9).is_within_budget);
  const SearchResult segments = planned_by(Method::Chen, problem, 6.5e9);
  ASSERT_TRUE(segments.is_within_budget);
  EXPECT_GT(overhead(segments, problem), 0.15);
}

// Without a candidate by the method, the plan that keeps every value remains.
TEST(LowerSets, StopsWhenAsked) {
  const Problem problem = unet();
  for (const Method method : {Method::Approximate, Method::Chen}) {
    int calls = 0;
    SearchOptions options;
    options.budget_bytes = 1'000'000'000;
    options.goes_on = [&](const SearchProgress&) { return ++calls < 3; };
    const SearchResult stopped = plan_by_lower_sets(problem, options, method);
    EXPECT_TRUE(stopped.was_stopped) << name_of(method);
    EXPECT_EQ(calls, 3) << name_of(method);
    EXPECT_EQ(testing::fault_in(problem, stopped.plan), "");
  }
}

TEST(LowerSets, CutsOnlyForwardPasses) {
  Problem problem = chain();
  problem.items[15].may_repeat = true;
  problem.items[16].may_repeat = true;
  EXPECT_EQ(error_summary([&] { plan_by_lower_sets(problem, {}, Method::Exact); }),
            "blocks of a forward pass alone can be computed again");
}

TEST(LowerSets, MethodsHaveNames) {
  EXPECT_EQ(parse_method("chen"), Method::Chen);
  EXPECT_EQ(parse_method("chens"), std::nullopt);
  EXPECT_EQ(name_of(Method::Approximate), "approximate");
}

// Fused functions leave fewer values to keep and less to recompute.
TEST(FusedUnet, NeedsLessMemoryAndRecomputation) {
  NEEDS_DOCUMENTS();
  const Problem problem = unet(true);
  const Plan plain = planned(problem, plain_events(problem));
  EXPECT_EQ(testing::fault_in(problem, plain), "");
  // 5.615 GB where the two gradients of a convolution are one item.
  EXPECT_EQ(plain.max_live_bytes, 5'008'436'228u);
  for (const auto& [budget, most] : {std::pair(5e9, 0.001), std::pair(4e9, 0.006)}) {
    const SearchResult found = planned_by(Method::Search, problem, budget);
    ASSERT_TRUE(found.is_within_budget) << budget;
    EXPECT_LE(overhead(found, problem), most) << budget;
  }
}

}  // namespace
}  // namespace tenon::memory::lower_sets_test
