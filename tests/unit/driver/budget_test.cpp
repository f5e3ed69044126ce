#include "driver/compile.h"
#include "driver/compiled.h"
#include "driver/planning/budget.h"
#include "driver/random.h"
#include "driver/training/session.h"
#include "driver/zoo/zoo.h"
#include "ir/text.h"
#include "ops/registry.h"
#include "passes/train/train.h"
#include "program/file.h"
#include "runtime/swap.h"
#include "unit/error_text.h"
#include "unit/memory/plan_checker.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

namespace tenon {
namespace {

// Nine convolutions, every third with a residual: far more is kept for the way back than one step
// needs.
std::string network() {
  std::string constants, nodes = "  a0 = conv(x, w0) {pads = [1, 1, 1, 1]}\n  y0 = sigmoid(a0)\n";
  constants += "  w0 = constant f32[8, 3, 3, 3] normal(seed = 1, mean = 0.0, deviation = 0.3)\n";
  for (int k = 1; k < 9; ++k) {
    constants += concat("  w", k, " = constant f32[8, 8, 3, 3] normal(seed = ", k + 1,
                        ", mean = 0.0, deviation = 0.15)\n");
    nodes += concat("  a", k, " = conv(y", k - 1, ", w", k, ") {pads = [1, 1, 1, 1]}\n");
    const std::string from = concat(k % 3 == 0 ? "r" : "a", k);
    if (k % 3 == 0) nodes += concat("  r", k, " = add(a", k, ", y", k - 3, ")\n");
    nodes += concat("  y", k, k % 2 == 0 ? " = sigmoid(" : " = tanh(", from, ")\n");
  }
  return concat("graph net (x: f32[4, 3, 24, 24]) {\n", constants,
                "  fc = constant f32[8, 5] normal(seed = 5, mean = 0.0, deviation = 0.3)\n", nodes,
                "  l = reduce_mean(y8) {axes = [2, 3], keep_axes = false}\n  y = matmul(l, fc)\n  "
                "return y\n}");
}

StatefulGraph training_step() {
  TrainOptions options;
  options.optimizer.kind = "momentum";
  return train(parse_graph(network(), all_ops()), options);
}

std::vector<Tensor> batch() {
  Tensor x(DType::F32, {4, 3, 24, 24}), target(DType::I64, {4});
  Random random(11);
  for (std::int64_t k = 0; k < x.size(); ++k) x.set_real(k, random.real() - 0.5);
  for (std::int64_t k = 0; k < 4; ++k) target.set_integer(k, k);
  return {x, target};
}

void expect_equal_bits(const Tensor& a, const Tensor& b, const std::string& what) {
  ASSERT_EQ(a.byte_size(), b.byte_size()) << what;
  EXPECT_EQ(std::memcmp(a.bytes().data(), b.bytes().data(), a.byte_size()), 0) << what;
}

SessionOptions within(const std::string& budget, int threads) {
  return {threads, "native", "", {budget, {}, false, threads}};
}

// Every parameter, moment and statistic after three steps, and the losses on the way.
std::pair<States, std::vector<Tensor>> trained(Session& session) {
  std::vector<Tensor> losses;
  for (int step = 0; step < 3; ++step) losses.push_back(session.run(batch()).front());
  return {session.states(), losses};
}

TEST(Budget, ResultsAreThoseOfTheRunWithoutOneBitForBit) {
  Session plain(training_step(), {2});
  const auto [states, losses] = trained(plain);
  std::size_t most_repeated = 0;
  for (const char* text : {"100%", "80%", "65%"}) {
    Session session(training_step(), within(text, 2));
    const auto [kept_states, kept_losses] = trained(session);
    const BudgetReport& report = session.budget()->report();
    EXPECT_EQ(report.plain_arena_bytes, plain.program().arena_bytes);
    EXPECT_LE(session.arena_bytes(), report.budget_bytes) << text;
    EXPECT_EQ(session.arena_bytes(), report.arena_bytes) << text;
    EXPECT_TRUE(report.is_measured);
    most_repeated = std::max(most_repeated, report.repeated_count);
    for (std::size_t k = 0; k < losses.size(); ++k)
      expect_equal_bits(losses[k], kept_losses[k], concat(text, " loss ", k));
    for (std::size_t k = 0; k < states.size(); ++k)
      expect_equal_bits(states[k].second, kept_states[k].second,
                        concat(text, " ", states[k].first));
  }
  EXPECT_GT(most_repeated, 0u);
}

TEST(Budget, ASizeHoldsWhatLiesBesideTheArenaToo) {
  Session plain(training_step(), {1});
  const std::uint64_t outside = bytes_outside_arena(plain.program(), 1);
  BudgetRequest request;
  request.threads = 1;
  request.budget = std::to_string(outside + plain.program().arena_bytes);
  Session session(training_step(), {1, "native", "", request});
  EXPECT_EQ(session.budget()->report().budget_bytes, plain.program().arena_bytes);
  request.budget = std::to_string(outside);
  EXPECT_EQ(error_summary([&] {
              Session(training_step(), {1, "native", "", request});
            }),
            "the budget does not hold what has to be there all the time");
}

TEST(Budget, WhatCannotBeKeptIsRefusedBeforeTheRun) {
  const std::string text = error_text([] { Session(training_step(), within("5%", 1)); });
  EXPECT_NE(text.find("no plan keeps the arena within the budget"), std::string::npos) << text;
  EXPECT_NE(text.find("the largest alive there: '"), std::string::npos) << text;
  EXPECT_NE(text.find("proven: step '"), std::string::npos) << text;
  EXPECT_NE(text.find("alone needs "), std::string::npos) << text;
  for (const char* nonsense : {"-3", "60 percent", "%", "4 parsecs", "nan%"}) {
    EXPECT_EQ(error_summary([&] { arena_budget(nonsense, 100, 0); }),
              "a budget is a number of bytes or a share of the memory without one")
        << nonsense;
  }
  const Graph symbolic =
      parse_graph("graph g (x: f32[N, 4]) {\n  y = relu(x)\n  return y\n}", all_ops());
  EXPECT_EQ(error_summary([&] {
              Session({symbolic, {}}, within("50%", 1));
            }),
            "the memory of this program cannot be planned");
}

struct Compiled {
  Program program;
  codegen::StepProblem described;
};
Compiled compiled_step() {
  std::optional<codegen::StepProblem> described;
  CompileRequest request;
  request.is_untuned = true;
  request.step_problem = &described;
  Program program = compile_model(training_step().graph, request);
  return {std::move(program), *std::move(described)};
}

std::vector<Datum> run_once(Program program) {
  const StatefulGraph step = training_step();
  std::vector<Datum> inputs(step.graph.inputs().size());
  const std::vector<Tensor> given = batch();
  for (std::size_t k = 0; k < given.size(); ++k) inputs[step.data_inputs()[k]] = given[k];
  for (const State& state : step.states) inputs[state.input] = state.initial.materialise();
  CompiledModel model(std::move(program), 2);
  model.run(inputs);
  return model.run(inputs);  // a second run finds what the first left
}

void expect_same_results(const Compiled& compiled, const memory::Plan& plan) {
  const std::vector<Datum> expected = run_once(compiled.program);
  const Program planned = codegen::carried_out(compiled.program, compiled.described, plan);
  EXPECT_LE(planned.arena_bytes, plan.arena_bytes + 63);
  const std::vector<Datum> got = run_once(planned);
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t k = 0; k < got.size(); ++k)
    expect_equal_bits(expected[k].tensor(), got[k].tensor(), concat("output ", k));
}

TEST(Budget, PlansOfStepsPassTheCheckerAndRunAsPlanned) {
  Compiled compiled = compiled_step();
  compiled.described.problem = memory::reordered(compiled.described.problem);
  for (const int share : {100, 70}) {
    memory::SearchOptions options;
    options.budget_bytes = compiled.program.arena_bytes * static_cast<std::uint64_t>(share) / 100;
    options.place.alignment = 64;
    const memory::SearchResult found = memory::search(compiled.described.problem, options);
    ASSERT_TRUE(found.is_within_budget) << share;
    EXPECT_EQ(testing::fault_in(compiled.described.problem, found.plan), "");
    expect_same_results(compiled, found.plan);
  }
}

TEST(Budget, WhatIsSwappedToAFileComesBackAsItWas) {
  Compiled compiled = compiled_step();
  memory::Problem& problem = compiled.described.problem;
  problem = memory::reordered(problem);
  problem.link = memory::Link{"file", 1e9, 0};
  memory::SearchOptions options;
  options.budget_bytes = compiled.program.arena_bytes * 65 / 100;
  options.may_recompute = false;
  options.may_swap = true;
  options.place.alignment = 64;
  const memory::SearchResult found = memory::search(problem, options);
  ASSERT_TRUE(found.is_within_budget);
  EXPECT_EQ(testing::fault_in(problem, found.plan), "");
  const Program planned = codegen::carried_out(compiled.program, compiled.described, found.plan);
  EXPECT_GE(planned.transfers.size(), 2u);
  EXPECT_EQ(planned.steps.size(), compiled.program.steps.size());
  expect_same_results(compiled, found.plan);
  EXPECT_EQ(error_summary([&] { write_program(planned, ::testing::TempDir() + "swaps.tnn"); }),
            "a program that swaps cannot be written to a file");
}

TEST(Budget, AFolderThatTakesNoFileIsToldBeforeTheRun) {
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before != nullptr ? before : "";
  setenv("TMPDIR", "/nowhere/at/all", 1);
  EXPECT_EQ(error_summary([] { SwapFile file(4096); }),
            "the file that values are swapped to failed");
  if (before != nullptr) {
    setenv("TMPDIR", kept.c_str(), 1);
  } else {
    unsetenv("TMPDIR");
  }
}

}  // namespace
}  // namespace tenon
