// A step of training on a device within fewer bytes: steps are run again, and every bit is the
// same.
#include "base/error.h"
#include "driver/inputs.h"
#include "driver/pipeline.h"
#include "driver/planning/budget.h"
#include "ir/text.h"
#include "ops/registry.h"
#include "passes/train/train.h"
#include "unit/codegen/cuda_emulation.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

StatefulGraph training_step() {
  std::string layers;
  for (int k = 1; k <= 6; ++k)
    layers += concat("  a", k, " = conv(y", k - 1, ", w", k % 2, ") {pads = [1, 1, 1, 1]}\n  y", k,
                     " = tanh(a", k, ")\n");
  TrainOptions options;
  options.optimizer.kind = "momentum";
  StatefulGraph step = train(
      parse_graph(
          concat(R"(graph net (y0: f32[2, 4, 10, 10]) {
  w0 = constant f32[4, 4, 3, 3] normal(seed = 1, mean = 0.0, deviation = 0.3)
  w1 = constant f32[4, 4, 3, 3] normal(seed = 2, mean = 0.0, deviation = 0.3)
)",
                 layers, "  y = reduce_mean(y6) {axes = [2, 3], keep_axes = false}\n  return y\n}"),
          all_ops()),
      options);
  step.graph = run_pipeline(step.graph, pipeline_for("cuda", ""));
  return step;
}

std::vector<Tensor> inputs_of(const StatefulGraph& step) {
  std::vector<Tensor> inputs;
  for (const Datum& input : random_inputs(step.graph, 3)) inputs.push_back(input.tensor());
  for (const State& state : step.states) inputs[state.input] = state.initial.materialise();
  return inputs;
}

TEST(DeviceBudget, StepsRunAgainGiveTheSameBits) {
  if (!testing::has_compiler()) GTEST_SKIP() << "no C++ compiler to run emulated kernels with";
  const StatefulGraph step = training_step();
  std::optional<codegen::StepProblem> described;
  const Program plain = testing::compile_emulated(step.graph, &described);
  ASSERT_TRUE(described);
  BudgetRequest request;
  request.budget = "60%";
  const auto planner = planned_within(plain, described, request);
  const Program within = planner->program();
  EXPECT_LE(within.arena_bytes, plain.arena_bytes * 6 / 10);
  EXPECT_GT(within.steps.size(), plain.steps.size());
  const std::vector<Tensor> inputs = inputs_of(step);
  const std::vector<Tensor> expected = testing::run_emulated(plain, inputs);
  const std::vector<Tensor> outputs = testing::run_emulated(within, inputs);
  ASSERT_EQ(outputs.size(), expected.size());
  for (std::size_t k = 0; k < outputs.size(); ++k)
    EXPECT_TRUE(identical(outputs[k], expected[k])) << "output " << k;
}

TEST(DeviceBudget, NothingIsSwappedOut) {
  std::optional<codegen::StepProblem> described;
  const Program plain = testing::compile_emulated(training_step().graph, &described);
  BudgetRequest request;
  request.budget = "60%";
  request.may_swap = true;
  EXPECT_NE(error_text([&] {
              planned_within(plain, described, request);
            }).find("nothing is swapped out of a device's memory"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon
