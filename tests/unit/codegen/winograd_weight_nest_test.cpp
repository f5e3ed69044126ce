#include "base/error.h"
#include "driver/compile.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"
#include "tuned_cpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tenon::winograd_weight_nest_test {
namespace {

// The weights are an input, as in a training step, and are transformed in every run. Expects
// Winograd to be selected, to agree with the reference, and to give the same bits on any number of
// threads.
void expect_winograd(const std::string& text) {
  const Graph graph = parse_graph(text, all_ops());
  const std::vector<Datum> inputs = models::random_inputs(graph, 3, {});
  const Tensor expected = reference::evaluate(graph, inputs).front().tensor();
  double largest = 0;
  for (std::int64_t k = 0; k < expected.size(); ++k)
    largest = std::max(largest, std::abs(expected.real_at(k)));
  Tensor first;
  const Program program = codegen::compile(graph, testing::tuned_cpu()).program;
  for (const int threads : {1, 2, 5}) {
    CompiledModel model(program, threads);
    const auto& steps = model.program().steps;
    EXPECT_TRUE(std::ranges::any_of(steps, [](const auto& step) {
      return step.candidate.starts_with("winograd");
    })) << text;
    const Tensor actual = model.run(inputs).front().tensor();
    for (std::int64_t k = 0; k < actual.size(); ++k) {
      ASSERT_NEAR(actual.real_at(k), expected.real_at(k), 1e-4 * largest) << text << k;
    }
    if (threads == 1) first = actual;
    EXPECT_TRUE(identical(actual, first)) << text;
  }
}

std::string convolution(const std::string& op, const std::string& weights) {
  return concat("graph (x: f32[2, 14, 11, 64]@NHWC, w: ", weights, ") {\n  y = ", op,
                "(x, w) {pads = [1, 1, 1, 1]}\n  return y\n}\n");
}

TEST(WinogradWeights, TransformsInputWeights) {
  expect_winograd(convolution("conv", "f32[48, 64, 3, 3]"));
  // a multiple of the vector width of AVX-512
  expect_winograd(convolution("conv", "f32[64, 64, 3, 3]"));
  expect_winograd(convolution("conv", "f32[3, 3, 64, 48]@HWIO"));
}

// A convolution's gradient by its image reads windows in reverse.
TEST(WinogradWeights, TransposedConvolutionReversesWindows) {
  expect_winograd(convolution("conv_transpose", "f32[64, 48, 3, 3]"));
}

}  // namespace
}  // namespace tenon::winograd_weight_nest_test
