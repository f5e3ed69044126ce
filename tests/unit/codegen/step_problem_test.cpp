#include "codegen/cuda/cuda_target.h"
#include "codegen/select.h"
#include "codegen/step_problem.h"
#include "driver/compile.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "target/gpu_facts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace tenon::step_problem_test {
namespace {

constexpr double kFlops = 2.0 * 4096 * 4096 * 4096;

// Returns the estimated seconds of a large product on a device.
double product_seconds(const std::string& dtype, bool allows_tf32, bool uses_libraries = true) {
  const std::string type = dtype + "[4096, 4096]";
  codegen::CompileOptions options = driver::cpu_options();
  options.target = codegen::cuda::cuda_target(
      {.architecture = "sm_90a", .allows_tf32 = allows_tf32, .uses_libraries = uses_libraries});
  const TaskList list = codegen::select(parse_graph("graph (a: " + type + ", b: " + type +
                                                        ") {\n  y = matmul(a, b)\n  return y\n}\n",
                                                    all_ops()),
                                        options)
                            .tasks;
  const TargetFacts facts = gpu_facts("sm_90a");
  const auto described = codegen::step_problem(list, facts, static_cast<int>(facts.units));
  return described->problem.seconds();
}

// The estimate is 60 % of the peak rate of the product's element type.
TEST(StepProblem, DeviceGemmsUsePeakOfElementType) {
  const auto expected = [](double flops_per_s) { return kFlops / (0.6 * flops_per_s); };
  EXPECT_NEAR(product_seconds("f32", false) / expected(51e12), 1, 0.02);
  EXPECT_NEAR(product_seconds("f32", true) / expected(397e12), 1, 0.02);
  EXPECT_NEAR(product_seconds("f16", false) / expected(786e12), 1, 0.02);
  // generated kernels
  EXPECT_NEAR(product_seconds("f16", false, false) / expected(786e12), 1, 0.02);
}

// A concatenation that is read several times has a task for each part. Both are one item.
TEST(StepProblem, TasksThatWriteOneBufferAreOneItem) {
  const TaskList list = codegen::select(parse_graph(R"(
graph (b: f32[1, 32, 14, 14], a: f32[1, 1, 32], k: f32[32]) {
  y = fused(b, a, k) group = graph (b: f32[1, 32, 14, 14], a: f32[1, 1, 32], k: f32[32]) {
    t = reshape(b) {shape = [1, 196, 32]}
    c = concat(a, t) {axis = 1}
    y = layer_norm(c, k, k)
    return y
  }
  return y
}
)",
                                                    all_ops()),
                                        driver::cpu_options())
                            .tasks;
  std::map<std::uint32_t, int> writers;
  for (const TaskList::Task& task : list.tasks) {
    for (const std::uint32_t id : task.writes) ++writers[id];
  }
  EXPECT_TRUE(std::ranges::any_of(writers, [](const auto& each) { return each.second > 1; }));
  const auto described = codegen::step_problem(list, driver::cpu_options().target->facts(), 1);
  ASSERT_TRUE(described);
  std::size_t steps = 0;
  for (const std::vector<std::uint32_t>& of_item : described->steps) steps += of_item.size();
  EXPECT_GT(steps, described->steps.size());
}

}  // namespace
}  // namespace tenon::step_problem_test
