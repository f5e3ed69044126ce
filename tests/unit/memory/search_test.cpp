#include "base/error.h"
#include "memory/device.h"
#include "memory/map_html.h"
#include "memory/order.h"
#include "memory/search.h"
#include "memory/size_text.h"
#include "unit/memory/plan_checker.h"
#include "unit/needs_documents.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace tenon::memory::search_test {
namespace {

std::string read_fixture(const std::string& name) {
  std::ifstream file("tests/fixtures/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

documents::RecordedRun recorded(const char* format, const char* fixture,
                                const documents::RunReading& reading = {},
                                const DeviceSpec& device = {}) {
  const auto document =
      documents::find_document_format(format)->read(read_fixture(fixture), fixture);
  return document->recorded_run(reading, device).value();
}

Problem unet(const DeviceSpec& device = {}) {
  return recorded("chainer", "unet_chainer.graph.txt", {}, device).problem;
}

SearchResult searched(const Problem& problem, double budget_bytes, bool swaps = false,
                      std::uint64_t step_limit = 0) {
  SearchOptions options;
  options.step_limit = step_limit;
  options.budget_bytes = static_cast<std::uint64_t>(budget_bytes);
  options.may_swap = swaps;
  SearchResult result = search(problem, options);
  EXPECT_EQ(testing::fault_in(problem, result.plan), "");
  return result;
}

TEST(UnetPlan, ExactPeaksByRetainedValuesAndByTags) {
  NEEDS_DOCUMENTS();
  const Problem retained = unet(),
                tags = recorded("chainer", "unet_chainer.graph.txt", {.uses_tags = true}).problem;
  const Plan plan = planned(retained, plain_events(retained));
  EXPECT_EQ(plan.max_live_bytes, 7'277'658'112u);
  EXPECT_EQ(testing::fault_in(retained, plan), "");
  EXPECT_EQ(largest_working_set_bytes(retained), 2'199'724'032u);
  EXPECT_EQ(retained.fixed_bytes, 264'090'128u);
  EXPECT_NEAR(retained.seconds(), 0.556, 0.0005);
  const Plan by_tags = planned(tags, plain_events(tags));
  EXPECT_EQ(by_tags.max_live_bytes, 7'803'387'904u);
  EXPECT_EQ(largest_working_set_bytes(tags), 2'832'334'848u);
}

TEST(UnetPlan, StopsWithTheBestPlanSoFar) {
  NEEDS_DOCUMENTS();
  const Problem problem = reordered(unet());
  SearchOptions options;
  options.budget_bytes = 4'000'000'000;
  int calls = 0;
  SearchProgress last;
  options.goes_on = [&](const SearchProgress& progress) {
    last = progress;
    return ++calls < 5;
  };
  const SearchResult result = search(problem, options);
  EXPECT_EQ(calls, 5);
  EXPECT_EQ(last.evaluation_count, 5000u);
  EXPECT_TRUE(result.was_stopped);
  EXPECT_EQ(testing::fault_in(problem, result.plan), "");
  options.goes_on = [&](const SearchProgress&) { return true; };
  EXPECT_FALSE(search(problem, options).was_stopped);
}

// 5.386 % is the proven minimum of recomputation in this order.
TEST(UnetPlan, RecomputationIsOptimal) {
  NEEDS_DOCUMENTS();
  const Problem problem = reordered(unet());
  const SearchResult result = searched(problem, 4e9);
  ASSERT_TRUE(result.is_within_budget);
  EXPECT_LE(result.plan.arena_bytes, 4'000'000'000u);
  EXPECT_LE(result.plan.seconds / problem.seconds() - 1, 0.0539);
  // The search is deterministic.
  EXPECT_EQ(searched(problem, 4e9, false, 2000).plan, searched(problem, 4e9, false, 2000).plan);
}

TEST(UnetPlan, SwappingOverlapsComputation) {
  NEEDS_DOCUMENTS();
  DeviceSpec device;
  device.link = Link{"host", 25e9, 0};
  const Problem problem = reordered(unet(device));
  const SearchResult result = searched(problem, 4e9, true, 8000);
  ASSERT_TRUE(result.is_within_budget);
  EXPECT_LE(result.plan.seconds / problem.seconds() - 1, 0.002);
}

TEST(UnetPlan, QuarterBatchNeedsNoRecomputation) {
  NEEDS_DOCUMENTS();
  const documents::RecordedRun run = recorded("chainer", "unet_chainer.graph.txt");
  std::vector<int> counts;
  for (const auto& [micro_batches, problem] : run.split) counts.push_back(micro_batches);
  EXPECT_EQ(counts, (std::vector<int>{2, 4, 8}));
  const Problem problem = reordered(run.split[1].second());
  EXPECT_LE(planned(problem, plain_events(problem)).arena_bytes, 2'000'000'000u);
}

TEST(UnetPlan, RefusesLessThanTheLargestItem) {
  NEEDS_DOCUMENTS();
  const Problem problem = reordered(unet());
  SearchOptions options;
  options.budget_bytes = 2'000'000'000;
  options.step_limit = 500;
  const SearchResult result = search(problem, options);
  EXPECT_FALSE(result.is_within_budget);
  EXPECT_GE(result.plan.arena_bytes, largest_working_set_bytes(problem));
  EXPECT_EQ(testing::fault_in(problem, result.plan), "");
}

TEST(MegenginePlan, WithAndWithoutInPlace) {
  NEEDS_DOCUMENTS();
  const Problem problem = recorded("megengine", "megengine_resnet50.profile.json").problem;
  ASSERT_NO_THROW(verify(problem));
  const Plan apart = planned(problem, plain_events(problem), {}, false);
  EXPECT_EQ(apart.arena_bytes, 96'337'920u);
  EXPECT_EQ(testing::fault_in(problem, apart), "");
  const Plan in_place = planned(problem, plain_events(problem), {}, true);
  EXPECT_EQ(in_place.arena_bytes, 72'272'896u);
  EXPECT_EQ(testing::fault_in(problem, in_place), "");
}

TEST(Sizes, ParseUnits) {
  EXPECT_EQ(parse_bytes("4GiB"), std::uint64_t{4} << 30);
  EXPECT_EQ(parse_bytes("1.5 MB"), 1'500'000u);
  EXPECT_EQ(parse_bytes("12"), 12u);
  for (const char* nonsense :
       {"", "-4GiB", "4 potatoes", "GiB", "1e9", "4.4.4", "999999TiB", "nan"}) {
    EXPECT_EQ(parse_bytes(nonsense), std::nullopt) << nonsense;
  }
}

TEST(Devices, ReportInvalidDescriptions) {
  const auto message = [](const char* text) {
    try {
      parse_device(text, "d.json");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("read");
  };
  EXPECT_EQ(message(R"({"name": "x", "flops_per_s": 1e12, "bytes_per_s": 1e11})"), "read");
  EXPECT_NE(message("{").find("no JSON"), std::string::npos);
  EXPECT_NE(message(R"({"name": "x", "flops_per_s": -1, "bytes_per_s": 1e11})").find("flops_per_s"),
            std::string::npos);
  EXPECT_NE(message(R"({"name": "x", "flops_per_s": 1, "bytes_per_s": 1, "lnk": {}})")
                .find("did you mean 'link'"),
            std::string::npos);
}

TEST(MemoryMap, EscapesNames) {
  Problem problem;
  problem.name = "<script>";
  problem.values.push_back({"a<b>&\"", 64, true, true});
  problem.items.push_back({"make", {}, {0}, {}, false, {{1.0, 0}}});
  const std::string page = memory_map(planned(problem, plain_events(problem)), problem, 128);
  EXPECT_EQ(page.find("<script>"), std::string::npos);
  EXPECT_NE(page.find("a&lt;b&gt;&amp;&quot;"), std::string::npos);
  EXPECT_NE(page.find("budget"), std::string::npos);
}

TEST(Problems, Verify) {
  Problem problem;
  problem.values.push_back({"v", 1, false, true});
  problem.items.push_back({"reads too early", {0}, {}, {}, false, {{0, 0}}});
  EXPECT_THROW(verify(problem), Error);
  problem.items = {{"makes", {}, {0}, {}, false, {{0, 0}}},
                   {"again", {}, {0}, {}, false, {{0, 0}}}};
  EXPECT_THROW(verify(problem), Error);
  problem.items = {{"makes", {}, {0}, {}, false, {{-1, 0}}}};
  EXPECT_THROW(verify(problem), Error);
  EXPECT_THROW(parse_plan("plan\nrun x 0\n", "p"), Error);
  EXPECT_THROW(parse_plan("nonsense", "p"), Error);
}

// Selects the order that has a plan, or the faster one of two.
TEST(Search, ComparesAllGivenOrders) {
  // Three values with one reader each: all alive at once, or one after another.
  Problem together;
  for (std::uint32_t k = 0; k < 3; ++k) {
    together.values.push_back({concat("v", k), 64, false, false});
    together.items.push_back({concat("make ", k), {}, {k}, {}, false, {{1, 0}}, k});
  }
  for (std::uint32_t k = 0; k < 3; ++k)
    together.items.push_back({concat("read ", k), {k}, {}, {}, false, {{1, 0}}, 3 + k});
  Problem apart = together;
  for (std::size_t k = 0; k < 6; ++k) apart.items[k] = together.items[k / 2 + (k % 2) * 3];
  const std::vector<Problem> orders = {together, apart};
  SearchOptions options;
  options.budget_bytes = 64;
  const OrderedResult found = search_orders(orders, options, false);
  EXPECT_TRUE(found.result.is_within_budget);
  EXPECT_EQ(found.order, 1u);
  EXPECT_EQ(testing::fault_in(orders[found.order], found.result.plan), "");
  options.budget_bytes = 192;
  EXPECT_EQ(search_orders(orders, options, true).order, 0u);  // free of cost: stops early
  options.budget_bytes = 32;
  EXPECT_FALSE(search_orders(orders, options, true).result.is_within_budget);
  EXPECT_EQ(candidate_orders({}).size(), 1u);
}

TEST(CandidateOrders, OfARecordedStep) {
  NEEDS_DOCUMENTS();
  const std::vector<Problem> tried = candidate_orders(unet());
  EXPECT_GE(tried.size(), 2u);
  EXPECT_EQ(tried.front().items.front().name, reordered(unet()).items.front().name);
  for (const Problem& order : tried) EXPECT_NO_THROW(verify(order));
}

}  // namespace
}  // namespace tenon::memory::search_test
