#include "base/error.h"
#include "driver/compile.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "models/extract_node.h"
#include "models/inputs.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"
#include "tune/tuner.h"

#include <gtest/gtest.h>

namespace tenon::tuner_test {
namespace {

constexpr const char* kNetwork = R"(graph (x: f32[1, 12, 12, 33]@NHWC) {
  w: f32[3, 3, 33, 40]@HWIO = constant f32[3, 3, 33, 40] normal(seed = 1, mean = 0.0, deviation = 0.1)
  v: f32[1, 1, 40, 24]@HWIO = constant f32[1, 1, 40, 24] normal(seed = 2, mean = 0.0, deviation = 0.1)
  a = conv(x, w) {pads = [1, 1, 1, 1]}
  b = relu(a)
  y = conv(b, v)
  z = softmax(y) {axis = -1}
  return z
}
)";

// Compiles for x86-64-v3, the baseline of every machine that runs Tenon.
codegen::CompileOptions plain() {
  codegen::CompileOptions options = driver::cpu_options("x86-64-v3");
  return options;
}

tune::TuneOptions quick(int threads = 1) {
  tune::TuneOptions options;
  options.compile = plain();
  options.threads = threads;
  return options;
}

codegen::CompileOptions tuned(const tune::TuningCache& cache, int threads = 1) {
  codegen::CompileOptions options = plain();
  options.choose = tune::tuned_choice(cache, tune::tuning_place(*options.target, threads));
  return options;
}

TEST(Tuner, TimesEachKernelOnceAndReusesTimings) {
  const Graph graph = parse_graph(kNetwork, all_ops());
  tune::TuningCache cache;
  const tune::TuneReport first = tune::tune(graph, cache, quick());
  EXPECT_GE(first.kernels, 3U);
  EXPECT_EQ(first.timed, first.kernels);
  EXPECT_EQ(first.left(), 0U);
  const tune::TuneReport second = tune::tune(graph, cache, quick());
  EXPECT_EQ(second.known, first.kernels);
  EXPECT_EQ(second.timed, 0U);
  // Timings of another number of threads do not apply.
  EXPECT_EQ(tune::tune(graph, cache, quick(2)).known, 0U);
  for (const codegen::Decision& decision : codegen::decide(graph, tuned(cache))) {
    std::size_t accepting = 0;
    for (const auto& candidate : decision.candidates) accepting += candidate.verdict.accepts;
    if (accepting < 2) continue;
    const std::string& why = decision.selection.why;
    EXPECT_TRUE(accepting > 4 ? why == concat("the fastest of ", accepting, " that were timed")
                              : why.starts_with("tuned: "))
        << why;
  }
}

TEST(Tuner, TunedProgramsMatchTheReference) {
  const Graph graph = parse_graph(kNetwork, all_ops());
  tune::TuningCache cache;
  tune::tune(graph, cache, quick());
  const std::vector<Datum> inputs = models::random_inputs(graph, 5);
  const Tensor expected = reference::evaluate(graph, inputs).at(0).tensor();
  const Program program = codegen::compile(graph, tuned(cache)).program;
  Tensor first;
  for (const int threads : {1, 2, 7}) {
    const Tensor result = CompiledModel(program, threads).run(inputs).at(0).tensor();
    for (std::int64_t k = 0; k < result.size(); ++k)
      ASSERT_NEAR(result.real_at(k), expected.real_at(k), 1e-5);
    if (threads == 1) first = result;
    EXPECT_TRUE(identical(result, first));
  }
  // The same cache gives the same program.
  EXPECT_EQ(codegen::compile(graph, tuned(cache)).program.code, program.code);
}

TEST(Tuner, InterruptKeepsTimings) {
  const Graph graph = parse_graph(kNetwork, all_ops());
  tune::TuningCache cache;
  tune::TuneOptions options = quick();
  std::size_t begun = 0;
  options.on_kernel = [&](std::size_t, std::size_t, const std::string& name) {
    begun += !name.empty();
  };
  options.is_interrupted = [&] { return begun >= 2; };
  const tune::TuneReport report = tune::tune(graph, cache, options);
  EXPECT_TRUE(report.was_interrupted);
  EXPECT_EQ(report.timed, 1U);
  EXPECT_EQ(cache.all().size(), 1U);
  EXPECT_NO_THROW(codegen::compile(graph, tuned(cache)));
  const tune::TuneReport rest = tune::tune(graph, cache, quick());
  EXPECT_EQ(rest.known, 1U);
  EXPECT_EQ(rest.left(), 0U);
}

TEST(Tuner, HonoursTheTimeLimit) {
  const Graph graph = parse_graph(kNetwork, all_ops());
  tune::TuningCache cache;
  tune::TuneOptions options = quick();
  options.seconds = 1e-9;
  const tune::TuneReport report = tune::tune(graph, cache, options);
  EXPECT_EQ(report.timed, 0U);
  EXPECT_EQ(report.left(), report.kernels);
  EXPECT_FALSE(report.was_interrupted);
}

// The cache states the fastest candidate; permission is the target's decision.
TEST(Tuner, IgnoresForbiddenAndUnknownWinners) {
  const Graph graph = parse_graph(kNetwork, all_ops());
  tune::TuningCache cache;
  const codegen::Decision decision = codegen::decide(graph, plain()).front();
  tune::TunedKernel kernel;
  kernel.place = tune::tuning_place(*plain().target, 1);
  kernel.work = decision.work;
  kernel.timings = {{"winograd 4x4", 0, 1, 1},
                    {"tiles 4x16", 0, 2, 1},
                    {"tiles 6x16", 0, 3, 1},
                    {"magic", 0, 0.1, 1}};
  kernel.ranges = {{0, 0, "winograd 4x4"}};
  cache.store(kernel);
  const auto chosen = [&](bool allow_winograd) {
    codegen::CompileOptions options = tuned(cache);
    options.allow_winograd = allow_winograd;
    const codegen::Decision made = codegen::decide(graph, options).front();
    return made.candidates[made.selection.versions.front().candidate].name;
  };
  EXPECT_EQ(chosen(true), "winograd 4x4");
  EXPECT_EQ(chosen(false), "tiles 4x16");
  kernel.ranges = {{0, 0, "magic"}};
  cache.store(kernel);
  EXPECT_EQ(chosen(true), "winograd 4x4");
  kernel.timings = {{"magic", 0, 0.1, 1}};
  cache.store(kernel);
  EXPECT_EQ(chosen(false), "tiles 6x16");
}

TEST(Tuner, SymbolRangesAreGapless) {
  const Graph graph = parse_graph(R"(graph <N in [1, 40]> (a: f32[N, 24]) {
  b = constant f32[24, 40] normal(seed = 1, mean = 0.0, deviation = 0.1)
  y = matmul(a, b)
  return y
}
)",
                                  all_ops());
  tune::TuningCache cache;
  tune::tune(graph, cache, quick());
  const std::vector<tune::TunedKernel> kernels = cache.all();
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(kernels.front().symbol, "N");
  EXPECT_EQ(kernels.front().ranges.front().lo, 1);
  EXPECT_EQ(kernels.front().ranges.back().hi, 40);
  EXPECT_EQ(problem_of(kernels.front()), std::nullopt);
  // Forces several versions regardless of the timings.
  tune::TunedKernel forced = kernels.front();
  forced.ranges = {{1, 3, "tiles 2x32"}, {4, 30, "tiles 6x16"}, {31, 40, "loops"}};
  cache.store(forced);
  CompiledModel model(codegen::compile(graph, tuned(cache)).program, 1);
  EXPECT_EQ(model.program().steps.size(), 3U);
  for (const std::int64_t rows : {1, 3, 4, 30, 31, 40}) {
    const std::vector<Datum> inputs = models::random_inputs(graph, 5, {{"a", {rows, 24}}});
    const Tensor expected = reference::evaluate(graph, inputs).at(0).tensor();
    const Tensor result = model.run(inputs).at(0).tensor();
    for (std::int64_t k = 0; k < result.size(); ++k)
      ASSERT_NEAR(result.real_at(k), expected.real_at(k), 1e-5);
  }
  // A candidate that occurs twice packs its weights once.
  forced.ranges = {{1, 3, "tiles 6x16"}, {4, 30, "loops"}, {31, 40, "tiles 6x16"}};
  cache.store(forced);
  const std::uint64_t twice = codegen::compile(graph, tuned(cache)).program.constant_bytes;
  forced.ranges = {{1, 3, "tiles 6x16"}, {4, 40, "loops"}};
  cache.store(forced);
  EXPECT_EQ(twice, codegen::compile(graph, tuned(cache)).program.constant_bytes);
  // Ranges with gaps are ignored.
  forced.ranges = {{2, 3, "tiles 2x32"}, {4, 40, "loops"}};
  cache.store(forced);
  EXPECT_EQ(codegen::decide(graph, tuned(cache)).front().selection.why, "least estimated cost");
}

TEST(Tuner, SingleNodesShareTimings) {
  const Graph graph = parse_graph(kNetwork, all_ops());
  for (const codegen::Decision& decision : codegen::decide(graph, driver::cpu_options())) {
    bool is_found = false;
    for (const codegen::Decision& alone :
         codegen::decide(models::extract_node(graph, decision.node), driver::cpu_options())) {
      is_found |= alone.work == decision.work;
    }
    EXPECT_TRUE(is_found) << decision.work;
  }
}

}  // namespace
}  // namespace tenon::tuner_test
