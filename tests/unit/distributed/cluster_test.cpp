#include "distributed/cluster.h"
#include "models/model.h"
#include "train/measured_cluster.h"
#include "train/options.h"
#include "train/trainer.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

namespace tenon::cluster_test {
namespace {

constexpr const char* kText = R"({
  "name": "two tiers", "ranks": 64, "exchange": "hierarchical", "start_s": 1e-6,
  "device": {"name": "d", "flops_per_s": 1e12, "bytes_per_s": 1e11, "memory_bytes": 1000000000},
  "links": [{"name": "inner", "ranks": 4, "bytes_per_s": 1e10, "latency_s": 1e-6},
            {"name": "outer", "ranks": 64, "bytes_per_s": 1e9, "latency_s": 1e-5}]
})";

std::string changed(const std::string& from, const std::string& to) {
  std::string text = kText;
  return text.replace(text.find(from), from.size(), to);
}

TEST(Cluster, CountsBytesByLink) {
  distributed::Cluster cluster = distributed::parse_cluster(kText, "test");
  EXPECT_EQ(cluster.exchange(1, 800).seconds, 0);
  // Three quarters stay in a group of four; a quarter is then summed over two groups.
  EXPECT_EQ(cluster.exchange(8, 800).bytes, (std::vector<double>{600, 100}));
  // Flat all-reduce: seven eighths leave a rank, three of its peers are near.
  cluster.is_hierarchical = false;
  EXPECT_EQ(cluster.exchange(8, 800).bytes, (std::vector<double>{300, 400}));
  EXPECT_DOUBLE_EQ(cluster.exchange(8, 800).seconds, 300 / 1e10 + 3e-6 + 400 / 1e9 + 4e-5);
}

TEST(Cluster, RefusesMalformedFiles) {
  const auto refusal = [](const std::string& text) {
    return error_text([&] { distributed::parse_cluster(text, "c.json"); });
  };
  EXPECT_EQ(refusal("{"), "a description of a cluster is no JSON\n  at        c.json");
  EXPECT_NE(refusal(changed("\"ranks\": 64, \"exchange\"", "\"exchange\"")).find("c.json, ranks"),
            std::string::npos);
  EXPECT_NE(refusal(changed("hierarchical", "magic")).find("direct or hierarchical"),
            std::string::npos);
  EXPECT_NE(refusal(changed("\"ranks\": 4,", "\"ranks\": 5,")).find("a multiple"),
            std::string::npos);
  EXPECT_NE(refusal(changed("start_s", "strat_s")).find("nobody reads"), std::string::npos);
  EXPECT_NE(refusal(changed("\"ranks\": 64, \"exchange\"", "\"ranks\": 65, \"exchange\""))
                .find("joins all 65"),
            std::string::npos);
}

// Ranks on cores of one machine: communication uses the same cores, and surplus ranks are
// serialised.
TEST(StepPlan, SerialisesRanksThatShareCores) {
  distributed::Cluster cluster = distributed::parse_cluster(kText, "test");
  cluster.ranks_at_once = 2;
  passes::TrainOptions train;
  train::set_optimizer(train, "momentum");
  const Graph model = train::with_batch(models::load_model("zoo:mlp?batch=N,hidden=64"), 16);
  const distributed::StepCosts costs(model, train, cluster);
  const distributed::StepPlan two = distributed::plan_step(costs, cluster, 2, false, 4e6);
  const distributed::StepPlan four = distributed::plan_step(costs, cluster, 4, false, 4e6);
  EXPECT_NEAR(two.step_s,
              costs.compute_s + costs.update_start_s + costs.update_s + two.communication_s, 1e-12);
  EXPECT_NEAR(four.step_s, 2 * (two.step_s - two.communication_s + four.communication_s), 1e-12);
  distributed::StepCosts more = costs;
  more.between_s = 1;
  more.meeting_s = 2;
  const double one = distributed::plan_step(costs, cluster, 1, false, 4e6).step_s;
  EXPECT_NEAR(distributed::plan_step(more, cluster, 1, false, 4e6).step_s, one + 1, 1e-12);
  EXPECT_NEAR(distributed::plan_step(more, cluster, 2, false, 4e6).step_s, two.step_s + 3, 1e-12);
  EXPECT_NEAR(distributed::plan_step(more, cluster, 4, false, 4e6).step_s, four.step_s + 4, 1e-12);
}

// Measures compiled stages on this machine: positive times, and gradients in the order of the plan.
TEST(StepPlan, MeasuresStages) {
  const distributed::Cluster here = train::cluster_here(1);
  EXPECT_GE(here.ranks_at_once, 1);
  EXPECT_GT(here.tiers.front().bytes_per_s, 1e6);
  passes::TrainOptions train;
  const Graph model = train::with_batch(models::load_model("zoo:mlp?batch=N,hidden=64"), 16);
  const distributed::StepCosts estimated(model, train, here);
  const distributed::StepCosts found = train::measured(estimated, model, train, 16, here, 1);
  EXPECT_GT(found.compute_s, 0);
  EXPECT_GT(found.between_s, 0);  // microsecond steps are dominated by calls and data
  EXPECT_GT(found.update_s, 0);
  ASSERT_EQ(found.gradients.size(), estimated.gradients.size());
  EXPECT_LE(found.gradients.back().made_at_s, found.compute_s * 1.001);
}

TEST(StepPlan, AddsUp) {
  const distributed::Cluster cluster = distributed::parse_cluster(kText, "test");
  passes::TrainOptions train;
  train::set_optimizer(train, "adam");
  const Graph model = train::with_batch(models::load_model("zoo:mlp?batch=N,hidden=512"), 64);
  const distributed::StepCosts costs(model, train, cluster);
  EXPECT_NEAR(costs.other_state_bytes, 2 * costs.parameter_bytes,
              100);  // two moments, and the step
  // loss and accuracy are exchanged as well
  EXPECT_GE(costs.gradient_bytes, costs.parameter_bytes);
  const distributed::StepPlan one = distributed::plan_step(costs, cluster, 1, false, 1 << 20);
  EXPECT_DOUBLE_EQ(one.step_s, costs.compute_s + costs.update_s + costs.update_start_s);
  EXPECT_EQ(one.communication_s, 0);
  const distributed::StepPlan whole = distributed::plan_step(costs, cluster, 16, false, 1 << 20);
  const distributed::StepPlan split = distributed::plan_step(costs, cluster, 16, true, 1 << 20);
  EXPECT_GT(whole.step_s, one.step_s);
  EXPECT_LT(split.bytes_per_rank, whole.bytes_per_rank);
  // Reduce-scatter of all gradients and all-gather of all sums: a fifteenth less than twice the
  // bytes.
  EXPECT_NEAR(whole.link_bytes[0] + 4 * whole.link_bytes[1],
              2 * costs.gradient_bytes * (0.75 + 0.75), costs.gradient_bytes * 1e-6);
  EXPECT_LE(distributed::best_plan(costs, cluster, 16).step_s,
            std::min(whole.step_s, split.step_s));
}

}  // namespace
}  // namespace tenon::cluster_test
