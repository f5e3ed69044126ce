#include "driver/compile.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "memory/order.h"
#include "ops/definition/registry.h"
#include "passes/train/train.h"
#include "planning/budget.h"
#include "program/file.h"
#include "runtime/swap.h"
#include "testing/random.h"
#include "train/session.h"
#include "unit/error_text.h"
#include "unit/memory/plan_checker.h"
#include "zoo/zoo.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TENON_HAS_SANITIZER true
#else
#define TENON_HAS_SANITIZER false
#endif

namespace tenon::budget_test {
namespace {

// Nine convolutions, every third with a residual: the backward pass keeps far more than one step
// needs.
std::string network(int batch = 4, int size = 24) {
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
  return concat("graph net (x: f32[", batch, ", 3, ", size, ", ", size, "]) {\n", constants,
                "  fc = constant f32[8, 5] normal(seed = 5, mean = 0.0, deviation = 0.3)\n", nodes,
                "  l = reduce_mean(y8) {axes = [2, 3], keep_axes = false}\n  y = matmul(l, fc)\n  "
                "return y\n}");
}

passes::StatefulGraph training_step() {
  passes::TrainOptions options;
  options.optimizer.kind = "momentum";
  return passes::train(parse_graph(network(), all_ops()), options);
}

std::vector<Tensor> batch() {
  Tensor x(DType::F32, {4, 3, 24, 24}), target(DType::I64, {4});
  testing::Random random(11);
  for (std::int64_t k = 0; k < x.size(); ++k) x.set_real(k, random.real() - 0.5);
  for (std::int64_t k = 0; k < 4; ++k) target.set_integer(k, k);
  return {x, target};
}

void expect_equal_bits(const Tensor& a, const Tensor& b, const std::string& what) {
  ASSERT_EQ(a.byte_size(), b.byte_size()) << what;
  EXPECT_EQ(std::memcmp(a.bytes().data(), b.bytes().data(), a.byte_size()), 0) << what;
}

train::SessionOptions within(const std::string& budget, int threads) {
  return {threads, {}, {budget, {}, false, threads}};
}

// All parameters, moments and statistics after three steps, and the loss of each step.
std::pair<train::States, std::vector<Tensor>> trained(train::Session& session) {
  std::vector<Tensor> losses;
  for (int step = 0; step < 3; ++step) losses.push_back(session.run(batch()).front());
  return {session.states(), losses};
}

TEST(Budget, ResultsAreBitIdentical) {
  train::Session plain(training_step(), {2});
  const auto [states, losses] = trained(plain);
  std::size_t most_repeated = 0;
  for (const char* text : {"100%", "65%"}) {
    train::Session session(training_step(), within(text, 2));
    const auto [kept_states, kept_losses] = trained(session);
    const planning::BudgetReport& report = session.budget()->report();
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

// Evaluation between epochs forwards the states unchanged, by copies.
TEST(Budget, EvaluationStaysWithinBudget) {
  const auto measured = [](const train::SessionOptions& options) {
    train::Session session(passes::evaluation(parse_graph(network(), all_ops()), {}), options);
    return session.run(batch());
  };
  const std::vector<Tensor> plain = measured({2}), kept = measured(within("100%", 2));
  ASSERT_EQ(plain.size(), kept.size());
  for (std::size_t k = 0; k < plain.size(); ++k)
    expect_equal_bits(plain[k], kept[k], concat("result ", k));
}

TEST(Budget, BudgetIncludesMemoryOutsideTheArena) {
  train::Session plain(training_step(), {1});
  const std::uint64_t outside = planning::bytes_outside_arena(plain.program(), 1);
  planning::BudgetRequest request;
  request.threads = 1;
  request.budget = std::to_string(outside + plain.program().arena_bytes);
  train::Session session(training_step(), {1, {}, request});
  EXPECT_EQ(session.budget()->report().budget_bytes, plain.program().arena_bytes);
  request.budget = std::to_string(outside);
  EXPECT_EQ(error_summary([&] {
              train::Session(training_step(), {1, {}, request});
            }),
            "the budget does not hold what has to be there all the time");
}

TEST(Budget, RefusesInfeasibleBudgets) {
  const std::string text = error_text([] { train::Session(training_step(), within("5%", 1)); });
  EXPECT_NE(text.find("no plan keeps the arena within the budget"), std::string::npos) << text;
  EXPECT_NE(text.find(" are alive: '"), std::string::npos) << text;
  EXPECT_NE(text.find("proven: step '"), std::string::npos) << text;
  EXPECT_NE(text.find("alone needs "), std::string::npos) << text;
  for (const char* nonsense : {"-3", "60 percent", "%", "4 parsecs", "nan%", "0", "0%", "0 GiB"}) {
    EXPECT_EQ(error_summary([&] { planning::arena_budget(nonsense, 100, 0); }),
              "a budget is a number of bytes or a share of the memory without one")
        << nonsense;
  }
  const Graph symbolic =
      parse_graph("graph g (x: f32[N, 4]) {\n  y = relu(x)\n  return y\n}", all_ops());
  EXPECT_EQ(error_summary([&] {
              train::Session({symbolic, {}}, within("50%", 1));
            }),
            "the memory of this program cannot be planned");
}

codegen::Compiled compiled_described(const Graph& graph) {
  driver::CompileRequest request;
  request.is_untuned = true;
  request.describes_step = true;
  return driver::compile_model(graph, request);
}
codegen::Compiled compiled_step() { return compiled_described(training_step().graph); }

std::vector<Datum> run_once(Program program) {
  const passes::StatefulGraph step = training_step();
  std::vector<Datum> inputs(step.graph.inputs().size());
  const std::vector<Tensor> given = batch();
  for (std::size_t k = 0; k < given.size(); ++k) inputs[step.data_inputs()[k]] = given[k];
  for (const passes::State& state : step.states) inputs[state.input] = state.initial.materialise();
  CompiledModel model(std::move(program), 2);
  model.run(inputs);
  return model.run(inputs);  // the second run must not depend on the first
}

void expect_same_results(const codegen::Compiled& compiled, const memory::Plan& plan) {
  const std::vector<Datum> expected = run_once(compiled.program);
  const Program planned = codegen::apply_plan(compiled.program, *compiled.step_problem, plan);
  EXPECT_LE(planned.arena_bytes, plan.arena_bytes + 63);
  const std::vector<Datum> got = run_once(planned);
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t k = 0; k < got.size(); ++k)
    expect_equal_bits(expected[k].tensor(), got[k].tensor(), concat("output ", k));
}

TEST(Budget, StepPlansVerifyAndRun) {
  codegen::Compiled compiled = compiled_step();
  compiled.step_problem->problem = memory::reordered(compiled.step_problem->problem);
  for (const int share : {100, 70}) {
    memory::SearchOptions options;
    options.budget_bytes = compiled.program.arena_bytes * static_cast<std::uint64_t>(share) / 100;
    options.place.alignment = 64;
    const memory::SearchResult found = memory::search(compiled.step_problem->problem, options);
    ASSERT_TRUE(found.is_within_budget) << share;
    EXPECT_EQ(testing::fault_in(compiled.step_problem->problem, found.plan), "");
    expect_same_results(compiled, found.plan);
  }
}

TEST(Budget, SwapsToAFile) {
  codegen::Compiled compiled = compiled_step();
  memory::Problem& problem = compiled.step_problem->problem;
  problem = memory::reordered(problem);
  problem.link = memory::Link{"file", 1e9, 0};
  memory::SearchOptions options;
  options.budget_bytes = compiled.program.arena_bytes * 65 / 100;
  options.may_recompute = false;
  options.may_swap = true;
  options.place.alignment = 64;
  options.restarts = 1;  // one plan suffices
  const memory::SearchResult found = memory::search(problem, options);
  ASSERT_TRUE(found.is_within_budget);
  EXPECT_EQ(testing::fault_in(problem, found.plan), "");
  const Program planned = codegen::apply_plan(compiled.program, *compiled.step_problem, found.plan);
  EXPECT_GE(planned.transfers.size(), 2u);
  EXPECT_EQ(planned.steps.size(), compiled.program.steps.size());
  expect_same_results(compiled, found.plan);
  EXPECT_EQ(error_summary([&] { write_program(planned, ::testing::TempDir() + "swaps.tnn"); }),
            "a program that swaps cannot be written to a file");
}

// Four convolutions with dropout between: the candidate for gradient accumulation.
std::string splittable(const std::string& batch) {
  return concat("graph net (x: f32[", batch, R"(, 3, 16, 16]) {
  w0 = constant f32[8, 3, 3, 3] normal(seed = 1, mean = 0.0, deviation = 0.3)
  w1 = constant f32[8, 8, 3, 3] normal(seed = 2, mean = 0.0, deviation = 0.15)
  w2 = constant f32[8, 8, 3, 3] normal(seed = 3, mean = 0.0, deviation = 0.15)
  fc = constant f32[2048, 5] normal(seed = 5, mean = 0.0, deviation = 0.1)
  a0 = conv(x, w0) {pads = [1, 1, 1, 1]}
  y0 = tanh(a0)
  d0, m0 = dropout(y0)
  a1 = conv(d0, w1) {pads = [1, 1, 1, 1]}
  y1 = relu(a1)
  a2 = conv(y1, w2) {pads = [1, 1, 1, 1]}
  y2 = tanh(a2)
  l = reshape(y2) {shape = [)",
                batch, R"(, 2048]}
  y = matmul(l, fc)
  return y
})");
}

std::vector<Tensor> batch_of_eight() {
  Tensor x(DType::F32, {8, 3, 16, 16}), target(DType::I64, {8});
  testing::Random random(3);
  for (std::int64_t k = 0; k < x.size(); ++k) x.set_real(k, random.real() - 0.5);
  for (std::int64_t k = 0; k < 8; ++k) target.set_integer(k, k % 5);
  return {x, target};
}

std::vector<Tensor> part_of(const std::vector<Tensor>& batch, std::int64_t part,
                            std::int64_t size) {
  std::vector<Tensor> result;
  for (const Tensor& whole : batch) {
    Shape shape = whole.shape();
    shape[0] = size;
    Tensor piece(whole.dtype(), shape);
    std::memcpy(piece.mutable_bytes().data(),
                whole.bytes().data() + static_cast<std::size_t>(part) * piece.byte_size(),
                piece.byte_size());
    result.push_back(piece);
  }
  return result;
}

// The micro-batches unrolled in one graph and run one by one must give the same sums.
TEST(Budget, AccumulatesMicroBatchesInOrder) {
  passes::TrainOptions options;
  options.optimizer.kind = "momentum";
  const passes::StatefulGraph whole =
      passes::train(parse_graph(splittable("8"), all_ops()), options);
  const std::vector<Tensor> batch = batch_of_eight();
  for (const std::int64_t micro_batches : {2, 8}) {
    options.micro_batches = micro_batches;
    const passes::StatefulGraph part = passes::train(
        parse_graph(splittable(std::to_string(8 / micro_batches)), all_ops()), options);
    train::Session together(passes::accumulated(part, whole, micro_batches), {2});
    train::Session apart(part, {2}, {nullptr, micro_batches});
    for (int step = 0; step < 3; ++step) {
      std::vector<std::vector<Tensor>> pieces;
      for (std::int64_t k = 0; k < micro_batches; ++k)
        pieces.push_back(part_of(batch, k, 8 / micro_batches));
      expect_equal_bits(together.run(batch)[0], apart.run_micro_batches(pieces)[0],
                        concat("loss ", step));
    }
    const train::States a = together.states(), b = apart.states();
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t k = 0; k < a.size(); ++k) {
      EXPECT_EQ(a[k].first, b[k].first);
      expect_equal_bits(a[k].second, b[k].second, concat(micro_batches, " parts: ", a[k].first));
    }
  }
}

// Convolutions with biases: the sum of a bias's gradients over all micro-batches must not fuse with
// the kernels that mask the gradient, or the first micro-batch would wait for the last.
TEST(Budget, MicroBatchesAreIndependent) {
  std::string constants, nodes, from = "x";
  for (int k = 0; k < 4; ++k) {
    constants +=
        concat("  w", k, " = constant f32[8, ", k == 0 ? 3 : 8, ", 3, 3] normal(seed = ", k + 1,
               ", mean = 0.0, deviation = 0.2)\n  b", k, " = constant f32[8, 1, 1] splat 0.1\n");
    nodes += concat("  a", k, " = conv(", from, ", w", k, ") {pads = [1, 1, 1, 1]}\n  s", k,
                    " = add(a", k, ", b", k, ")\n  y", k, " = relu(s", k, ")\n");
    from = concat("y", k);
  }
  const Graph model = parse_graph(concat("graph net (x: f32[8, 3, 32, 32]) {\n", constants, nodes,
                                         "  y = reduce_mean(y3) {axes = [2, 3], keep_axes = "
                                         "false}\n  return y\n}"),
                                  all_ops());
  passes::TrainOptions options;
  options.optimizer.kind = "sgd";
  const auto most_alive = [](const Graph& step) {
    const memory::Problem problem =
        memory::reordered(compiled_described(step).step_problem->problem);
    return memory::planned(problem, memory::plain_events(problem)).max_live_bytes;
  };
  EXPECT_LT(most_alive(planning::split_of(model, options).in_micro_batches(8).graph),
            most_alive(passes::train(model, options).graph) * 3 / 10);
}

TEST(Budget, SplitsTheBatchForLargeOperators) {
  const Graph model = parse_graph(splittable("8"), all_ops());
  passes::TrainOptions options;
  options.optimizer.kind = "sgd";
  const passes::StatefulGraph step = passes::train(model, options);
  train::SessionOptions session = within("38%", 2);
  EXPECT_EQ(error_summary([&] { train::Session(step, session); }),
            "no plan keeps the arena within the budget");
  session.budget.may_split = true;
  session.split = planning::split_of(model, options);
  train::Session split(step, session);
  const planning::BudgetReport& report = split.budget()->report();
  EXPECT_GT(report.micro_batches, 1);
  EXPECT_LE(split.arena_bytes(), report.budget_bytes);
  EXPECT_LE(report.budget_bytes, report.plain_arena_bytes * 38 / 100);
  // The same micro-batches without a budget, bit for bit.
  train::Session free(session.split.in_micro_batches(report.micro_batches), {1});
  for (int k = 0; k < 4; ++k)
    expect_equal_bits(split.run(batch_of_eight())[0], free.run(batch_of_eight())[0], "loss");
  for (std::size_t k = 0; k < free.states().size(); ++k)
    expect_equal_bits(free.states()[k].second, split.states()[k].second, free.states()[k].first);
}

TEST(Budget, RefusesMicroBatchesOfMixedSamples) {
  passes::TrainOptions options;
  options.optimizer.kind = "sgd";
  const auto why = [&](const std::string& text) {
    return error_summary(
        [&] { passes::require_samples_apart(parse_graph(text, all_ops()), options); });
  };
  EXPECT_EQ(why(splittable("8")), "no error");
  const std::string mixed = "gradient accumulation is impossible: an operator mixes samples";
  EXPECT_EQ(why("graph g (x: f32[4, 3]) {\n  y = softmax(x) {axis = 0}\n  return y\n}"), mixed);
  EXPECT_EQ(why("graph g (x: f32[4, 3]) {\n  y = reshape(x) {shape = [3, 4]}\n  return y\n}"),
            mixed);
  EXPECT_EQ(why("graph g (x: f32[4, 2, 3, 3]) {\n"
                "  s = constant f32[2] [1, 1]\n  b = constant f32[2] [0, 0]\n"
                "  m = constant f32[2] [0, 0]\n  v = constant f32[2] [1, 1]\n"
                "  y = batch_norm(x, s, b, m, v)\n  return y\n}"),
            mixed);
  options.loss.ignore_label = 0;
  EXPECT_EQ(
      why(splittable("8")),
      "gradient accumulation is impossible: the mean loss depends on the labels of all samples");
}

std::vector<Datum> step_inputs(const passes::StatefulGraph& step,
                               const std::vector<Tensor>& given) {
  std::vector<Datum> inputs(step.graph.inputs().size());
  for (std::size_t k = 0; k < given.size(); ++k) inputs[step.data_inputs()[k]] = given[k];
  for (const passes::State& state : step.states) inputs[state.input] = state.initial.materialise();
  return inputs;
}

// Both models hold their arenas, and each reads the other's outputs.
TEST(Budget, PlannedAndUnplannedModelsCoexist) {
  const passes::StatefulGraph step = training_step();
  codegen::Compiled compiled = compiled_step();
  std::vector<Datum> inputs = step_inputs(step, batch());
  CompiledModel plain(compiled.program, 2);
  EXPECT_THROW(plain.run_prepared(), InternalError);  // fails before it reads: inputs are missing
  planning::BudgetPlanner planner(compiled.program, *compiled.step_problem, {"65%", {}, false, 2});
  auto planned = std::make_unique<CompiledModel>(planner.program(), 2);
  for (int run = 0; run < 4; ++run) {
    const std::vector<Datum> a = plain.run(inputs), b = planned->run(inputs);
    for (std::size_t k = 0; k < a.size(); ++k)
      expect_equal_bits(a[k].tensor(), b[k].tensor(), concat("output ", k));
    for (const passes::State& state : step.states)
      inputs[state.input] = (run % 2 == 0 ? a : b)[state.output];
    std::vector<double> seconds;
    planned->run_prepared(seconds);
    if (run != 1 || !planner.learn(seconds)) continue;
    planned.reset();
    planned = std::make_unique<CompiledModel>(planner.program(), 2);
  }
}

std::uint64_t address_space_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0;
  file >> pages;
  return pages * 4096;
}

// The limit admits the planned arena and not the unplanned one.
TEST(Budget, SwapsWithinALimitedAddressSpace) {
  if (TENON_HAS_SANITIZER) GTEST_SKIP() << "a sanitizer takes the address space for itself";
  passes::TrainOptions options;
  options.optimizer.kind = "sgd";
  const passes::StatefulGraph step =
      passes::train(parse_graph(network(48, 96), all_ops()), options);
  codegen::Compiled compiled = compiled_described(step.graph);
  const Program& program = compiled.program;
  ASSERT_GT(program.arena_bytes, std::uint64_t{120} << 20);
  memory::Problem& problem = compiled.step_problem->problem;
  problem = memory::reordered(problem);
  problem.link = memory::Link{"file", 1e9, 0};
  memory::SearchOptions search;
  search.budget_bytes = program.arena_bytes * 62 / 100;
  search.may_recompute = false;
  search.may_swap = true;
  search.step_limit = 3000;
  search.place.alignment = 64;
  const memory::SearchResult found = memory::search(problem, search);
  ASSERT_TRUE(found.is_within_budget);
  const Program planned = codegen::apply_plan(program, *compiled.step_problem, found.plan);
  Tensor x(DType::F32, {48, 3, 96, 96}), target(DType::I64, {48});
  for (std::int64_t k = 0; k < x.size(); k += 7) x.set_real(k, static_cast<double>(k % 5) - 2);
  const std::vector<Datum> inputs = step_inputs(step, {x, target});
  std::vector<Datum> expected;
  {
    CompiledModel model(program, 1);
    expected = model.run(inputs);
  }
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = address_space_bytes() + planned.arena_bytes + (std::uint64_t{40} << 20);
  ASSERT_LT(planned.arena_bytes + (std::uint64_t{40} << 20), program.arena_bytes);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  std::string refused, failure;
  std::vector<Datum> got;
  try {
    refused = error_summary([&] { CompiledModel(program, 1).run(inputs); });
    CompiledModel model(planned, 1);
    got = model.run(inputs);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(refused, "no memory for the values between steps");
  ASSERT_EQ(failure, "");
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t k = 0; k < got.size(); ++k)
    expect_equal_bits(expected[k].tensor(), got[k].tensor(), concat("output ", k));
}

TEST(Budget, ReportsAnUnwritableSwapFolder) {
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
}  // namespace tenon::budget_test
