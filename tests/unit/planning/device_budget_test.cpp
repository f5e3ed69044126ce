// Training steps on a device within a memory budget: recomputation keeps every bit.
// tests/unit/runtime/cuda_swap_test.cpp covers swapping.
#include "base/error.h"
#include "driver/pipeline.h"
#include "driver/targets.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "ops/definition/registry.h"
#include "passes/train/train.h"
#include "planning/budget.h"
#include "unit/codegen/cuda_emulation.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

class DeviceBudget : public testing::EmulatedDeviceTest {};

TEST_F(DeviceBudget, RecomputationIsBitIdentical) {
  const passes::StatefulGraph step = testing::convolutions_step(6, 10);
  const codegen::Compiled compiled = testing::compile_described(step.graph);
  const Program& plain = compiled.program;
  ASSERT_TRUE(compiled.step_problem);
  planning::BudgetRequest request;
  request.budget = "60%";
  const auto planner = planning::planned_within(plain, compiled.step_problem, request);
  const Program within = planner->program();
  EXPECT_LE(within.arena_bytes, plain.arena_bytes * 6 / 10);
  EXPECT_GT(within.steps.size(), plain.steps.size());
  const std::vector<Tensor> inputs = testing::inputs_of(step);
  const std::vector<Tensor> expected = testing::run_emulated(plain, inputs);
  const std::vector<Tensor> outputs = testing::run_emulated(within, inputs);
  ASSERT_EQ(outputs.size(), expected.size());
  for (std::size_t k = 0; k < outputs.size(); ++k)
    EXPECT_TRUE(identical(outputs[k], expected[k])) << "output " << k;
}

// A product takes longer than the copy of its result: swapping is free, recomputation is not.
constexpr const char* kLargeValues = R"(graph net (x: f32[2048, 2048]) {
  w = constant f32[2048, 2048] normal(seed = 1, mean = 0.0, deviation = 0.05)
  a0 = matmul(x, w)
  y0 = tanh(a0)
  a1 = matmul(y0, w)
  y1 = tanh(a1)
  a2 = matmul(y1, w)
  y2 = tanh(a2)
  a3 = matmul(y2, w)
  y3 = tanh(a3)
  a4 = matmul(y3, w)
  y4 = tanh(a4)
  return y4
})";

TEST_F(DeviceBudget, SwapsToTheHost) {
  passes::TrainOptions options;
  options.loss.kind = "mse";
  passes::StatefulGraph step = passes::train(parse_graph(kLargeValues, all_ops()), options);
  step.graph = driver::run_pipeline(step.graph, driver::pipeline_for(driver::parse_target("cuda")));
  const codegen::Compiled compiled = testing::compile_described(step.graph);
  const Program& plain = compiled.program;
  ASSERT_TRUE(compiled.step_problem);
  planning::BudgetRequest request;
  request.budget = "60%";
  request.may_swap = true;
  const auto planner = planning::planned_within(plain, compiled.step_problem, request);
  const Program within = planner->program();
  const planning::BudgetReport& report = planner->report();
  EXPECT_LE(within.arena_bytes, report.budget_bytes);
  EXPECT_EQ(report.swap_place, "the host's memory");
  EXPECT_FALSE(within.transfers.empty());
  EXPECT_GT(report.swapped_bytes, 0u);
  EXPECT_GE(report.swap_place_bytes, report.swapped_bytes);
  EXPECT_NE(to_string(report).find(" swapped to the host's memory of "), std::string::npos)
      << to_string(report);
}

}  // namespace
}  // namespace tenon
