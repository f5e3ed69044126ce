// Tuning of device kernels: applicable candidates, timing, and selection from the cache.
#include "base/error.h"
#include "codegen/select.h"
#include "driver/compile.h"
#include "driver/explain.h"
#include "driver/pipeline.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "passes/train/train.h"
#include "testing/verify/trial_inputs.h"
#include "tune/device_tuning.h"
#include "tune/preferred.h"
#include "tune/tuner.h"
#include "unit/codegen/cuda_emulation.h"
#include "unit/codegen/fake_cuda.h"
#include "unit/runtime/on_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

namespace tenon::device_tuner_test {
namespace {

using codegen::Decision;
using Names = std::vector<std::string>;

constexpr const char* kProduct = R"(graph (x: f16[130, 64], b: f16[136]) {
  w = constant f16[64, 136] normal(seed = 1, mean = 0.0, deviation = 0.2)
  p = matmul(x, w)
  s = add(p, b)
  y = gelu(s)
  return y
}
)";
constexpr const char* kConvolution =
    R"(graph (x: f16[2, 9, 11, 64]@NHWC, z: f16[2, 9, 11, 64]@NHWC) {
  w = constant f16[64, 64, 3, 3] normal(seed = 3, mean = 0.0, deviation = 0.1)
  c = conv(x, w) {pads = [1, 1, 1, 1], out_layout = "NHWC"}
  s = add(c, z)
  y = relu(s)
  return y
}
)";
constexpr const char* kWeightGradient =
    R"(graph (x: f32[3, 7, 23, 64]@NHWC, dy: f32[3, 5, 21, 64]@NHWC, w: f32[64, 64, 3, 3]) {
  dw = conv_weight_gradient(x, dy) {kernel_shape = [3, 3]}
  y = sub(w, dw)
  return y
}
)";

Graph graph_of(const std::string& text) {
  return driver::run_pipeline(parse_graph(text, all_ops()),
                              driver::pipeline_for(driver::parse_target("cuda")));
}

codegen::cuda::CudaTarget with_libraries(bool is_emulated = false) {
  codegen::cuda::CudaTarget device = testing::emulated_target();
  device.is_emulated = is_emulated;
  device.uses_libraries = true;
  return device;
}

codegen::CompileOptions options_for(const codegen::cuda::CudaTarget& device) {
  codegen::CompileOptions options = driver::cpu_options();
  options.target = codegen::cuda::cuda_target(device, tune::device_names());
  return options;
}

codegen::CompileOptions device_options(bool is_emulated = false) {
  return options_for(with_libraries(is_emulated));
}

// Options for a target without libraries, whose code a processor runs.
codegen::CompileOptions emulated_options() { return options_for(testing::emulated_target()); }

// Returns the decision of the nest with the reduction.
Decision decision_of(const Graph& graph, const codegen::CompileOptions& options) {
  for (Decision& decision : codegen::decide(graph, options)) {
    if (decision.candidates.size() > 1) return std::move(decision);
  }
  throw Error("nothing is chosen there");
}

Names accepting(const Decision& decision) {
  Names names;
  for (const Decision::Candidate& option : decision.candidates) {
    if (option.verdict.accepts) names.push_back(option.name);
  }
  return names;
}

Names kernels_of(const Graph& graph, const codegen::CompileOptions& options) {
  const TaskList list = codegen::select(graph, options).tasks;
  EXPECT_NO_THROW(verify(list));
  Names names;
  for (const TaskList::Task& task : list.tasks)
    names.push_back(task.alternatives.front().candidate);
  return names;
}

codegen::CompileOptions preferring(codegen::CompileOptions options, const std::string& name) {
  options.choose = tune::preferred_choice({name}, {});
  return options;
}

TEST(DeviceTuner, RanksCandidatesByFacts) {
  EXPECT_EQ(accepting(decision_of(graph_of(kProduct), device_options())),
            // by the facts, too small for generated wgmma tiles
            (Names{"cublaslt", "wgmma", "mma", "loops"}));
  EXPECT_EQ(accepting(decision_of(graph_of(kConvolution), device_options())),
            (Names{"wgmma", "mma", "cudnn", "loops"}));
  EXPECT_EQ(accepting(decision_of(graph_of(kWeightGradient), device_options())),
            (Names{"wgmma", "cudnn", "loops"}));
  // The untimed default is the first candidate, with and without a decision log.
  for (const char* text : {kProduct, kConvolution, kWeightGradient}) {
    const Graph graph = graph_of(text);
    codegen::CompileOptions watched = device_options();
    watched.keeps_record = true;
    EXPECT_EQ(kernels_of(graph, watched), kernels_of(graph, device_options()));
  }
}

TEST(DeviceTuner, RefusalsGiveReasons) {
  const auto said = [](const std::string& text, const codegen::CompileOptions& options) {
    std::map<std::string, std::string> words;
    for (const auto& [name, what] :
         driver::describe_decision(decision_of(graph_of(text), options)).candidates)
      words[name] = what;
    return words;
  };
  const std::string odd =
      "graph (x: f32[130, 62], w: f32[62, 136]) {\n  y = matmul(x, w)\n  return y\n}\n";
  EXPECT_EQ(said(odd, device_options())["wgmma"],
            "refuses: no generated tile kernel supports its types, extents and strides");
  EXPECT_EQ(said(odd, device_options())["cublaslt"], "chosen: first by the facts; 1 kernel");
  codegen::cuda::CudaTarget older = with_libraries();
  older.architecture = "sm_80";
  EXPECT_EQ(said(kProduct, options_for(older))["wgmma"],
            "refuses: the target has no such instructions");
  const std::string large =
      "graph (x: f16[4096, 4096], w: f16[4096, 4096]) {\n  y = matmul(x, w)\n  return y\n}\n";
  EXPECT_EQ(said(large, device_options())["loops"], "refuses: too slow for 68719476736 products");
  EXPECT_EQ(said(large, device_options())["wgmma"], "accepts: 1 kernel");
}

TEST(DeviceTuner, EveryCandidateMatchesTheReference) {
  if (!testing::has_compiler()) GTEST_SKIP() << testing::kNeedsCompiler;
  for (const char* text : {kProduct, kConvolution, kWeightGradient}) {
    const Graph graph = graph_of(text);
    const std::vector<Datum> inputs = testing::trial_inputs(
        graph, {testing::TrialKind::Ordinary, testing::TrialKind::Ordinary, 1});
    for (const std::string& name : accepting(decision_of(graph, device_options(true)))) {
      const codegen::CompileOptions options = preferring(device_options(true), name);
      const Names kernels = kernels_of(graph, options);
      EXPECT_EQ(std::ranges::count(kernels, name) > 0, true) << name << text;
      testing::expect_as_reference(codegen::compile(graph, options).program, graph, inputs,
                                   concat(name, "\n", text));
    }
  }
}

// Each value of a symbol may have its own kernel; nests with equal text are then separate kernels.
TEST(DeviceTuner, SeparateKernelsPerSymbolRange) {
  if (!testing::has_compiler()) GTEST_SKIP() << testing::kNeedsCompiler;
  const Graph graph = graph_of(R"(graph <n in [1, 300]> (x: f16[n, 16]) {
  w = constant f16[16, 128] normal(seed = 3, mean = 0.0, deviation = 0.5)
  p = matmul(x, w)
  y = sigmoid(p)
  return y
}
)");
  codegen::CompileOptions options = device_options(true);
  options.choose = [](const Decision& decision) -> std::optional<codegen::Selection> {
    const auto place = [&](const std::string& name) {
      return static_cast<std::size_t>(
          std::ranges::find(decision.candidates, name, &Decision::Candidate::name) -
          decision.candidates.begin());
    };
    return codegen::Selection{{{place("loops"), "n", 1, 7},
                               {place("cublaslt"), "n", 8, 63},
                               {place("wgmma"), "n", 64, 300}},
                              "timed"};
  };
  const Program program = codegen::compile(graph, options).program;
  for (const std::int64_t rows : {3, 20, 130}) {
    std::vector<Datum> inputs =
        testing::trial_inputs(passes::with_symbols(graph, {{"n", Dim(rows)}}),
                              {testing::TrialKind::Ordinary, testing::TrialKind::Ordinary, 1});
    testing::expect_as_reference(program, graph, inputs, concat(rows, " rows"));
  }
}

void remember(tune::TuningCache& cache, const tune::TuningPlace& place, const Decision& decision,
              const Names& fastest_first) {
  tune::TunedKernel kernel;
  kernel.place = place;
  kernel.work = decision.work;
  kernel.name = decision.name;
  for (const std::string& name : fastest_first)
    kernel.timings.push_back(
        {name, 0, 1e-6 * (1.04 + static_cast<double>(kernel.timings.size())), 3});
  kernel.ranges = {{0, 0, fastest_first.front()}};
  cache.store(kernel);
}

TEST(DeviceTuner, CachedTimingsDecide) {
  const Graph graph = graph_of(kConvolution);
  const tune::TuningPlace place{"a GPU", "tenon 1, cuDNN 9", 1};
  tune::TuningCache cache;
  codegen::CompileOptions options = device_options();
  const Decision untimed = decision_of(graph, options);
  remember(cache, place, untimed, {"cudnn", "wgmma"});
  options.choose = tune::tuned_choice(cache, place);
  EXPECT_EQ(kernels_of(graph, device_options()), Names{"wgmma"});
  EXPECT_EQ(kernels_of(graph, options), Names{"cudnn"});
  EXPECT_EQ(decision_of(graph, options).selection.why, "tuned: 1.0 us, wgmma 2.0");
  // A preference overrides the cache.
  options.choose = tune::preferred_choice({"loops"}, options.choose);
  EXPECT_EQ(kernels_of(graph, options), Names{"loops"});
  // Timings of another device, library version or code generator do not apply.
  for (const tune::TuningPlace& other : {tune::TuningPlace{"another GPU", "tenon 1, cuDNN 9", 1},
                                         tune::TuningPlace{"a GPU", "tenon 1, cuDNN 10", 1},
                                         tune::TuningPlace{"a GPU", "tenon 2, cuDNN 9", 1}}) {
    options.choose = tune::tuned_choice(cache, other);
    EXPECT_EQ(kernels_of(graph, options), Names{"wgmma"});
  }
  // A candidate that the target no longer permits does not apply either.
  options.choose = tune::tuned_choice(cache, place);
  codegen::cuda::CudaTarget device = with_libraries();
  device.uses_libraries = false;
  options.target = codegen::cuda::cuda_target(device);
  EXPECT_EQ(kernels_of(graph, options), Names{"wgmma"});
  device.allows_tf32 = false;
  device.uses_libraries = true;
  options.target = codegen::cuda::cuda_target(device);
  EXPECT_EQ(kernels_of(graph, options), Names{"wgmma"});
}

TEST(DeviceTuner, RefusesUnknownPreferences) {
  EXPECT_NO_THROW(tune::require_candidate_names({"wgmma", "library"}, *device_options().target));
  EXPECT_THROW(tune::require_candidate_names({"wgma"}, *device_options().target), Error);
  EXPECT_NO_THROW(tune::require_candidate_names({"tiles 6x16"}, *driver::cpu_options().target));
  EXPECT_THROW(tune::require_candidate_names({"wgmma"}, *driver::cpu_options().target), Error);
}

class OnFakeDevice : public testing::FakeDeviceTest {};

// The fake device has no libraries: candidates are generated kernels and loops.
TEST_F(OnFakeDevice, TimesCandidatesAndKeepsTheFastest) {
  testing::in_own_process([](testing::FakeCuda&) {
    const Graph graph = graph_of(kConvolution);
    tune::TuneOptions options;
    options.compile = emulated_options();
    options.ready = testing::for_fake_cuda;
    tune::TuningCache cache;
    std::vector<std::string> timed;
    options.on_kernel = [&](std::size_t, std::size_t, const std::string& name) {
      if (!name.empty()) timed.push_back(name);
    };
    const tune::TuneReport report = tune::tune(graph, cache, options);
    EXPECT_EQ(report.timed, 1U);
    EXPECT_EQ(report.left() + report.failed, 0U);
    EXPECT_EQ(timed.size(), 1U);
    ASSERT_EQ(cache.all().size(), 1U);
    const tune::TunedKernel kernel = cache.all().front();
    EXPECT_EQ(kernel.place.machine, "a GPU on the processor");
    EXPECT_TRUE(kernel.place.generator.starts_with(codegen::source_name()));
    // A block takes a millisecond on the fake device: fewer blocks win.
    ASSERT_EQ(kernel.timings.size(), 3U);
    const tune::TunedKernel::Timing& fewest =
        *std::ranges::min_element(kernel.timings, {}, &tune::TunedKernel::Timing::seconds);
    EXPECT_EQ(kernel.ranges.front().candidate, fewest.candidate);
    EXPECT_GT(fewest.seconds, 1e-3);
    EXPECT_EQ(tune::tune(graph, cache, options).known, 1U);
    options.compile.choose =
        tune::tuned_choice(cache, tune::tuning_place(*options.compile.target, 1));
    EXPECT_EQ(kernels_of(graph, options.compile).back(), fewest.candidate);
    // An interrupted tuner keeps its timings.
    tune::TuningCache other;
    options.is_interrupted = [] { return true; };
    EXPECT_TRUE(tune::tune(graph, other, options).was_interrupted);
    EXPECT_TRUE(other.all().empty());
  });
}

// Compiling for a device looks up the cache under the device's key.
TEST_F(OnFakeDevice, CompilingUsesTheCache) {
  testing::in_own_process([](testing::FakeCuda&) {
    setenv("XDG_CACHE_HOME", testing::new_library_path("cache").c_str(), 1);
    const Graph graph = parse_graph(kConvolution, all_ops());
    driver::CompileRequest request;
    request.target = driver::parse_target("cuda:sm_90a");
    const auto tasks = [&] {
      return driver::print_model(graph, request, codegen::CompileStage::Tasks);
    };
    const auto decision = [&] {
      for (Decision& each : driver::decide_kernels(graph, request)) {
        if (each.candidates.size() > 1) return std::move(each);
      }
      throw Error("nothing is chosen there");
    };
    EXPECT_NE(tasks().find("\"wgmma\""), std::string::npos);
    EXPECT_EQ(decision().selection.why, "first by the facts");
    {
      tune::TuningCache cache(*tune::tuning_cache_path(), tune::TuningCache::Mode::Write);
      const tune::TuningPlace here = tune::tuning_place(*driver::make_target(request.target), 0);
      tune::TuningPlace stale = here;
      stale.generator = "tenon of yesterday";
      remember(cache, stale, decision(), {"loops"});
      remember(cache, here, decision(), {"cudnn", "wgmma", "loops"});
    }
    EXPECT_EQ(decision().selection.why, "tuned: 1.0 us, wgmma 2.0, loops 3.0");
    EXPECT_NE(tasks().find("\"cudnn\""), std::string::npos);
    EXPECT_EQ(tasks().find("\"wgmma\""), std::string::npos);
    request.is_untuned = true;
    EXPECT_NE(tasks().find("\"wgmma\""), std::string::npos);
    request.preferred = {"loops"};
    EXPECT_EQ(decision().selection.why, "preferred");
    EXPECT_EQ(tasks().find("\"wgmma\""), std::string::npos);
    std::filesystem::remove_all(testing::new_library_path("cache"));
  });
}

TEST_F(OnFakeDevice, SymbolRangesAreGapless) {
  testing::in_own_process([](testing::FakeCuda&) {
    // Generated tiles use one block; loops use more blocks for more rows.
    const Graph graph = graph_of(R"(graph <n in [1, 120]> (x: f16[n, 16], w: f16[16, 128]) {
  y = matmul(x, w)
  return y
}
)");
    tune::TuneOptions options;
    options.compile = emulated_options();
    options.ready = testing::for_fake_cuda;
    tune::TuningCache cache;
    EXPECT_EQ(tune::tune(graph, cache, options).timed, 1U);
    ASSERT_EQ(cache.all().size(), 1U);
    const tune::TunedKernel kernel = cache.all().front();
    EXPECT_EQ(kernel.symbol, "n");
    EXPECT_EQ(problem_of(kernel), std::nullopt);
    EXPECT_EQ(kernel.ranges.front().lo, 1);
    EXPECT_EQ(kernel.ranges.back().hi, 120);
    EXPECT_EQ(kernel.ranges.back().candidate, "wgmma");
    options.compile.choose =
        tune::tuned_choice(cache, tune::tuning_place(*options.compile.target, 1));
    EXPECT_EQ(kernels_of(graph, options.compile).back(), "wgmma");
  });
}

}  // namespace
}  // namespace tenon::device_tuner_test
