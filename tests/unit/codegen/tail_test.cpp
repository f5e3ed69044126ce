// Nests of a node that are so little work that they run behind the one before.
#include <gtest/gtest.h>

#include "base/error.h"
#include "codegen/compile.h"
#include "driver/compiled.h"
#include "driver/inputs.h"
#include "ir/text.h"
#include "ops/registry.h"
#include "program/verify.h"
#include "reference/evaluate.h"

namespace tenon {
namespace {

// Calls by step: {1, 2} is a step, then one with a tail.
std::vector<std::size_t> calls_of(const Program& program) {
  std::vector<std::size_t> calls;
  for (const Program::Step& step : program.steps) calls.push_back(1 + step.tail.size());
  return calls;
}

// Compiled as it stands: holds together, bitwise the same on any number of threads, close to the reference.
void expect_calls(const std::string& text, const std::vector<std::size_t>& calls, const codegen::CompileOptions& options = {},
                  const std::map<std::string, Shape>& shapes = {}) {
  const Graph graph = parse_graph(text, all_ops());
  const std::vector<Datum> inputs = random_inputs(graph, 5, shapes);
  const std::vector<Datum> expected = reference::evaluate(graph, inputs);
  const Program program = codegen::compile(graph, options);
  verify(program);
  EXPECT_EQ(calls_of(program), calls) << text;
  std::vector<Datum> first;
  for (const int threads : {1, 2, 3, 7}) {
    const std::vector<Datum> actual = CompiledModel(program, threads).run(inputs);
    if (threads == 1) first = actual;
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t k = 0; k < actual.size(); ++k) {
      const Tensor &mine = actual[k].tensor(), &right = expected[k].tensor();
      for (std::int64_t j = 0; j < mine.size(); ++j) ASSERT_NEAR(mine.real_at(j), right.real_at(j), 1e-4) << text;
      EXPECT_TRUE(identical(mine, first[k].tensor())) << text;
    }
  }
}

std::string two_products(const std::string& columns, const std::string& results = "y") {
  return concat("graph (x: f32[1, 300]) {\n  v = constant f32[300, 400] normal(seed = 1, mean = 0.0, deviation = 0.1)\n",
                "  w = constant f32[400, ", columns, "] normal(seed = 2, mean = 0.0, deviation = 0.1)\n  ", results,
                " = fused(x, v, w) group = graph (x: f32[1, 300], v: f32[300, 400], w: f32[400, ", columns,
                "]) {\n    h = matmul(x, v)\n    r = relu(h)\n    y = matmul(r, w)\n    return ", results, "\n  }\n  return ",
                results, "\n}\n");
}

TEST(Tail, IsAProductThatThreadsWouldNotShare) {
  expect_calls(two_products("10"), {2});
  expect_calls(two_products("1"), {2});
  expect_calls(two_products("40"), {1, 1});
}

TEST(Tail, ReadsWhatOthersReadToo) { expect_calls(two_products("10", "r, y"), {2}); }

TEST(Tail, MayHaveSeveralStages) {
  expect_calls(R"(graph (x: f32[4, 600], z: f32[50]) {
  w = constant f32[600, 50] normal(seed = 1, mean = 0.0, deviation = 0.1)
  v = constant f32[4, 7] normal(seed = 2, mean = 0.0, deviation = 0.1)
  y, s = fused(x, w, v, z) group = graph (x: f32[4, 600], w: f32[600, 50], v: f32[4, 7], z: f32[50]) {
    m = matmul(x, w)
    a = add(m, z)
    s = softmax(a) {axis = 0}
    t = transpose(s) {perm = [1, 0]}
    p = matmul(t, v)
    y = softmax(p) {axis = 0}
    return y, s
  }
  return y, s
}
)",
               {4});
}

// Each version of the step before has it; one of them runs.
TEST(Tail, FollowsEveryVersion) {
  const std::string text = R"(graph (x: f32[1, n], z: f32[n, 400]) {
  w = constant f32[400, 10] normal(seed = 2, mean = 0.0, deviation = 0.1)
  m, y = fused(x, z, w) group = graph (x: f32[1, n], z: f32[n, 400], w: f32[400, 10]) {
    m = matmul(x, z)
    y = matmul(m, w)
    return m, y
  }
  return m, y
}
)";
  std::vector<codegen::Decision> decisions;
  codegen::CompileOptions options;
  options.decisions = &decisions;
  options.choose = [](const codegen::Decision& decision) -> std::optional<codegen::Selection> {
    std::vector<std::size_t> accepting;
    for (std::size_t k = 0; k < decision.candidates.size(); ++k) {
      if (decision.candidates[k].verdict.accepts) accepting.push_back(k);
    }
    if (decision.symbols.empty() || accepting.size() < 2) return std::nullopt;
    const auto [lo, hi] = decision.symbols.at("n");
    return codegen::Selection{{{accepting[0], "n", lo, 20}, {accepting[1], "n", 21, hi}}, "by the test"};
  };
  for (const std::int64_t extent : {0, 7, 20, 21, 64}) {
    decisions.clear();
    expect_calls(text, {2, 2}, options, {{"x", {1, extent}}, {"z", {extent, 400}}});
    ASSERT_EQ(decisions.size(), 2u);
    EXPECT_FALSE(decisions[0].is_tail);
    EXPECT_EQ(decisions[0].step_count, 2u);
    EXPECT_TRUE(decisions[1].is_tail);
    EXPECT_EQ(decisions[1].step_count, 0u);
  }
}

TEST(Tail, IsNothingWhoseSizeOnlyTheRunKnows) {
  expect_calls(R"(graph (x: f32[1, 30], v: f32[30, n], w: f32[n, 10]) {
  m, y = fused(x, v, w) group = graph (x: f32[1, 30], v: f32[30, n], w: f32[n, 10]) {
    m = matmul(x, v)
    y = matmul(m, w)
    return m, y
  }
  return m, y
}
)",
               {1, 1}, {}, {{"v", {30, 5}}, {"w", {5, 10}}});
}

TEST(Tail, CountsInWhatAStepIsSaidToDo) {
  const Program program = codegen::compile(parse_graph(two_products("10"), all_ops()));
  ASSERT_EQ(program.steps.size(), 1u);
  EXPECT_EQ(program.steps[0].flops, 2.0 * (300 * 400 + 400 * 10) + 400);
  EXPECT_GT(program.steps[0].bytes, 4.0 * (300 * 400 + 400 * 10));
}

}  // namespace
}  // namespace tenon
