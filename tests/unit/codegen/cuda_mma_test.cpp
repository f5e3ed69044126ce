// mma.sync kernels: products and convolutions for sm_80, emulated as in `cuda_test.cpp`.
#include "base/error.h"
#include "codegen/cuda/mma.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/cuda/select.h"
#include "codegen/select.h"
#include "cuda_emulation.h"
#include "driver/compile.h"
#include "driver/pipeline.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "tasks/task_list.h"
#include "testing/verify/trial_inputs.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tenon::cuda_mma_test {
namespace {

class CudaMma : public testing::EmulatedDeviceTest {};

codegen::CompileOptions options_for(codegen::cuda::CudaTarget target) {
  codegen::CompileOptions options = driver::cpu_options();
  options.target = codegen::cuda::cuda_target(std::move(target));
  return options;
}

codegen::cuda::CudaTarget emulated(const char* architecture) {
  codegen::cuda::CudaTarget target = testing::emulated_target();
  target.architecture = architecture;
  return target;
}

// Compiles a graph for the emulated device, compares its results with the reference, and returns
// the selected tasks.
TaskList emulated_tasks(const std::string& text, const std::string& precision = "") {
  const Graph graph =
      driver::run_pipeline(parse_graph(text, all_ops()),
                           driver::pipeline_for(driver::parse_target("cuda:sm_80", precision)));
  const codegen::CompileOptions options = options_for(emulated("sm_80"));
  testing::expect_as_reference(
      codegen::compile(graph, options).program, graph,
      testing::trial_inputs(graph, {testing::TrialKind::Ordinary, testing::TrialKind::Ordinary, 1}),
      text);
  return codegen::select(graph, options).tasks;
}

bool has_mma(const TaskList& list) {
  return std::ranges::any_of(list.tasks, [](const TaskList::Task& task) {
    return !task.alternatives.empty() && task.alternatives.front().candidate == codegen::cuda::kMma;
  });
}

// Two row axes, partial tiles, transposed weights, a symbolic number of rows, several tiles, and
// epilogues with and without support in cuBLASLt.
TEST_F(CudaMma, GemmsWithEpilogues) {
  const std::vector<std::string> graphs = {
      R"(graph (x: f16[2, 70, 40], w: f16[40, 136], b: f16[136], r: f16[2, 70, 136]) {
  p = matmul(x, w)
  s = add(p, b)
  f = cast(s) {to = f32}
  g = gelu(f)
  h = cast(g) {to = f16}
  y = add(h, r)
  return y
}
)",
      R"(graph (x: bf16[129, 24], w: bf16[8, 24]) {
  t = transpose(w) {perm = [1, 0]}
  p = matmul(x, t)
  y = tanh(p)
  return y
}
)",
      R"(graph (x: f16[n, s, 200]) {
  w = constant f16[200, 128] normal(seed = 3, mean = 0.0, deviation = 0.2)
  p = matmul(x, w)
  y = gelu(p)
  return y
}
)",
      // One row, without a loop over rows.
      R"(graph (x: f16[1, 40], b: f16[24]) {
  w = constant f16[40, 24] normal(seed = 3, mean = 0.0, deviation = 0.2)
  p = matmul(x, w)
  s = add(p, b)
  y = tanh(s)
  return y
}
)",
      // The result may overwrite the residual.
      R"(graph (x: bf16[n, 30, 64], z: bf16[n, 30, 136]) {
  w = constant bf16[136, 64] normal(seed = 3, mean = 0.0, deviation = 0.2)
  t = transpose(w) {perm = [1, 0]}
  r = tanh(z)
  p = matmul(x, t)
  s = add(p, r)
  y = tanh(s)
  return y
}
)"};
  for (const std::string& text : graphs) EXPECT_TRUE(has_mma(emulated_tasks(text))) << text;
}

// f32 uses tensor cores if TF32 is allowed; constants are transposed at compile time.
TEST_F(CudaMma, GemmsInTF32) {
  const std::vector<std::string> graphs = {R"(graph (x: f32[70, 40], w: f32[24, 40]) {
  t = transpose(w) {perm = [1, 0]}
  p = matmul(x, t)
  y = tanh(p)
  return y
}
)",
                                           R"(graph (x: f32[n, 100]) {
  w = constant f32[100, 72] normal(seed = 3, mean = 0.0, deviation = 0.2)
  p = matmul(x, w)
  y = sigmoid(p)
  return y
}
)"};
  for (const std::string& text : graphs) {
    EXPECT_TRUE(has_mma(emulated_tasks(text))) << text;
    codegen::cuda::CudaTarget exact = emulated("sm_80");
    exact.allows_tf32 = false;
    EXPECT_FALSE(has_mma(
        codegen::select(parse_graph(text, all_ops()), options_for(std::move(exact))).tasks));
  }
}

// Signed and unsigned bytes in every combination, with epilogues that end in bytes, integers and
// floats.
TEST_F(CudaMma, Int8GemmsAreExact) {
  const std::vector<std::string> graphs = {
      R"(graph (x: f32[n, 144]) {
  w8 = constant i8[144, 136] uniform(seed = 3, low = -127, high = 127)
  b = constant f32[136] normal(seed = 4, mean = 0.0, deviation = 0.5)
  scale = constant f32[] 0.03
  zero = constant u8[] 119
  weight_scale = constant f32[] 0.004
  weight_zero = constant i8[] 0
  x8 = quantize_linear(x, scale, zero)
  xr = dequantize_linear(x8, scale, zero)
  wr = dequantize_linear(w8, weight_scale, weight_zero)
  p = matmul(xr, wr)
  s = add(p, b)
  r = relu(s)
  y_scale = constant f32[] 0.02
  y_zero = constant u8[] 3
  y = quantize_linear(r, y_scale, y_zero)
  return y
}
)",
      R"(graph (x: i8[70, 64], w: i8[24, 64]) {
  t = transpose(w) {perm = [1, 0]}
  p = matmul(x, t) {out_dtype = i32}
  y = add(p, p)
  return y
}
)",
      R"(graph (x: i8[70, 64], w: u8[64, 24]) {
  p = matmul(x, w) {out_dtype = i32}
  y = add(p, p)
  return y
}
)",
      R"(graph (x: u8[130, 80]) {
  w = constant u8[80, 16] uniform(seed = 5, low = 0, high = 255)
  p = matmul(x, w) {out_dtype = i32}
  y = cast(p) {to = f32}
  return y
}
)"};
  for (const std::string& text : graphs) EXPECT_TRUE(has_mma(emulated_tasks(text, "int8"))) << text;
}

// Strides, dilation, images with and without padding, channels of part of a 128-byte line and of
// several lines, 1x1 windows, a symbolic batch, partial tiles of outputs; with epilogues.
TEST_F(CudaMma, ConvolutionsAsImplicitGemm) {
  const std::vector<std::string> graphs = {
      R"(graph (x: f16[n, 9, 11, 40]@NHWC, z: f16[n, 9, 11, 64]@NHWC) {
  w = constant f16[64, 40, 3, 3] normal(seed = 3, mean = 0.0, deviation = 0.1)
  c = conv(x, w) {pads = [1, 1, 1, 1], out_layout = "NHWC"}
  s = add(c, z)
  y = relu(s)
  return y
}
)",
      R"(graph (x: bf16[3, 14, 13, 8]@NHWC) {
  w = constant bf16[136, 8, 2, 3] normal(seed = 4, mean = 0.0, deviation = 0.1)
  b = constant bf16[136] normal(seed = 5, mean = 0.0, deviation = 1.0)
  c = conv(x, w, b) {strides = [1, 3], pads = [1, 1, 0, 1], dilations = [2, 1], out_layout = "NHWC"}
  y = sigmoid(c)
  return y
}
)",
      R"(graph (x: f32[n, 7, 12, 36]@NHWC) {
  w = constant f32[24, 36, 1, 1] normal(seed = 4, mean = 0.0, deviation = 0.1)
  c = conv(x, w) {strides = [2, 2], out_layout = "NHWC"}
  y = gelu(c)
  return y
}
)"};
  for (const std::string& text : graphs) EXPECT_TRUE(has_mma(emulated_tasks(text))) << text;
}

// A grouped convolution is one GEMM per group, with its epilogue fused or as a separate kernel.
TEST_F(CudaMma, GroupedConvolutions) {
  const std::vector<std::string> graphs = {
      R"(graph (x: f16[n, 9, 11, 48]@NHWC) {
  w = constant f16[24, 16, 3, 3] normal(seed = 3, mean = 0.0, deviation = 0.1)
  b = constant f16[24] normal(seed = 5, mean = 0.0, deviation = 1.0)
  c = conv(x, w, b) {groups = 3, pads = [1, 1, 1, 1], strides = [2, 1], out_layout = "NHWC"}
  y = relu(c)
  return y
}
)",
      R"(graph (x: f32[2, 14, 13, 8]@NHWC) {
  w = constant f32[144, 4, 2, 3] normal(seed = 4, mean = 0.0, deviation = 0.1)
  y = conv(x, w) {groups = 2, pads = [1, 1, 0, 1], dilations = [2, 1], out_layout = "NHWC"}
  return y
}
)"};
  for (const std::string& text : graphs) EXPECT_TRUE(has_mma(emulated_tasks(text))) << text;
  // mma.sync is their only kernel, also on devices with wgmma.
  for (const char* const architecture : {"sm_80", "sm_90a"}) {
    EXPECT_TRUE(has_mma(
        codegen::select(driver::run_pipeline(parse_graph(graphs.front(), all_ops()),
                                             driver::pipeline_for(driver::parse_target("cuda"))),
                        options_for({.architecture = architecture}))
            .tasks));
  }
}

// Results in f32 are stored in f32.
TEST_F(CudaMma, F32Results) {
  EXPECT_TRUE(has_mma(emulated_tasks(R"(graph (x: f16[n, 64]) {
  w = constant f16[64, 72] normal(seed = 3, mean = 0.0, deviation = 0.2)
  y = matmul(x, w) {out_dtype = f32}
  return y
}
)")));
}

// Full and grouped channels; images padded with a value other than zero.
TEST_F(CudaMma, Int8ConvolutionsAreExact) {
  for (const auto& [channels, attributes] :
       {std::pair("80", "pads = [1, 1, 1, 1], strides = [2, 1]"),
        std::pair("16", "groups = 5, pads = [1, 1, 1, 1]")}) {
    const std::string text =
        concat("graph (x: f32[2, 80, 7, 9]) {\n  w8 = constant i8[40, ", channels,
               R"(, 3, 3] uniform(seed = 3, low = -127, high = 127)
  scale = constant f32[] 0.03
  zero = constant u8[] 119
  weight_scale = constant f32[] 0.004
  weight_zero = constant i8[] 0
  x8 = quantize_linear(x, scale, zero)
  xr = dequantize_linear(x8, scale, zero)
  wr = dequantize_linear(w8, weight_scale, weight_zero)
  c = conv(xr, wr) {)",
               attributes, R"(}
  y = relu(c)
  y_scale = constant f32[] 0.02
  y_zero = constant u8[] 3
  z = quantize_linear(y, y_scale, y_zero)
  return z
}
)");
    EXPECT_TRUE(has_mma(emulated_tasks(text, "int8"))) << text;
  }
}

// The emulation detects the data race of a device: a shared-memory stage read before its copy
// arrived.
TEST_F(CudaMma, DetectsMissingWaits) {
  const Graph graph = parse_graph(R"(graph (x: f16[80, 640]) {
  w = constant f16[640, 72] normal(seed = 3, mean = 0.0, deviation = 0.5)
  p = matmul(x, w)
  y = tanh(p)
  return y
}
)",
                                  all_ops());
  std::vector<Tensor> inputs;
  for (const Datum& input : testing::trial_inputs(
           graph, {testing::TrialKind::Ordinary, testing::TrialKind::Ordinary, 1}))
    inputs.push_back(input.tensor());
  const Program program = codegen::compile(graph, options_for(emulated("sm_80"))).program;
  const auto outcome = [&](Program run) {
    const std::vector<Tensor> outputs = testing::run_emulated(std::move(run), inputs);
    const std::span<const std::byte> bytes = outputs.front().bytes();
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  const std::vector<std::byte> expected = outcome(program);
  const std::string source(reinterpret_cast<const char*>(program.code.data()), program.code.size());
  const std::string wait = "await_copies<kStages - 2>();";
  const std::size_t first = source.find(wait), second = source.find(wait, first + 1);
  ASSERT_NE(second, std::string::npos);
  for (const std::size_t at : {first, second}) {
    std::string without = source;
    without.erase(at, wait.size());
    Program broken = program;
    const auto* bytes = reinterpret_cast<const std::byte*>(without.data());
    broken.code.assign(bytes, bytes + without.size());
    EXPECT_NE(outcome(std::move(broken)), expected) << at;
  }
}

// NVRTC accepts the source of every kernel variant for every architecture.
TEST_F(CudaMma, CompilesForEveryArchitecture) {
  try {
    codegen::cuda::compiler_name();
  } catch (const Error&) {
    GTEST_SKIP() << "no NVRTC to compile with";
  }
  const Graph graph =
      parse_graph(R"(graph (x: f16[n, 64], u: f32[n, 7, 7, 36]@NHWC, a: i8[70, 64], b: i8[24, 64]) {
  w = constant f16[64, 128] normal(seed = 3, mean = 0.0, deviation = 0.2)
  p = matmul(x, w)
  y = gelu(p)
  c = constant f32[24, 36, 3, 3] normal(seed = 4, mean = 0.0, deviation = 0.1)
  q = conv(u, c) {out_layout = "NHWC"}
  z = sigmoid(q)
  t = transpose(b) {perm = [1, 0]}
  r = matmul(a, t) {out_dtype = i32}
  return y, z, r
}
)",
                  all_ops());
  for (const char* const architecture : {"sm_80", "sm_89", "sm_90"}) {
    const Program program =
        codegen::compile(driver::run_pipeline(graph, driver::pipeline_for(driver::parse_target(
                                                         concat("cuda:", architecture), "int8"))),
                         options_for({.architecture = architecture,
                                      .allows_tf32 = true,
                                      .has_int8_multiply_add = true,
                                      .uses_libraries = false}))
            .program;
    EXPECT_FALSE(program.code.empty());
    EXPECT_EQ(std::ranges::count_if(
                  program.steps,
                  [](const Program::Step& step) { return step.candidate == codegen::cuda::kMma; }),
              3);
  }
}

// Few rows or columns get smaller tiles, so that more multiprocessors work.
TEST_F(CudaMma, SmallTilesForSmallGemms) {
  const auto tile_of = [](const char* x, const char* w) {
    const std::string text = concat("graph (x: f16[", x, "], w: f16[", w,
                                    "]) {\n  p = matmul(x, w)\n  y = tanh(p)\n  return y\n}\n");
    const Graph graph = driver::run_pipeline(
        parse_graph(text, all_ops()), driver::pipeline_for(driver::parse_target("cuda:sm_80")));
    const TaskList list =
        codegen::select(graph, options_for({.architecture = "sm_80", .uses_libraries = false}))
            .tasks;
    const auto tile =
        codegen::cuda::match_mma(list.kernels.front().nest, {.architecture = "sm_80"});
    return tile ? std::pair(tile->rows, tile->columns) : std::pair<std::int64_t, std::int64_t>();
  };
  using Tile = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(tile_of("4096, 768", "768, 3072"), (Tile{128, 128}));
  EXPECT_EQ(tile_of("4096, 768", "768, 768"), (Tile{128, 64}));
  EXPECT_EQ(tile_of("128, 768", "768, 768"), (Tile{64, 64}));
  EXPECT_EQ(tile_of("100000, 64", "64, 64"), (Tile{128, 64}));
  EXPECT_EQ(tile_of("n, 768", "768, 768"), (Tile{128, 128}));
  EXPECT_EQ(tile_of("n, 768", "768, 48"), (Tile{128, 64}));
}

// The cost model selects mma.sync kernels if a library would leave the epilogue to a separate
// kernel. On devices with wgmma those kernels come first; devices without tensor cores refuse both.
TEST_F(CudaMma, SelectedForUnsupportedEpilogues) {
  const auto candidates = [](const char* architecture, const char* follows) {
    const std::string text = concat(R"(graph (x: f16[4096, 768]) {
  w = constant f16[768, 3072] normal(seed = 1, mean = 0.0, deviation = 0.05)
  p = matmul(x, w)
  y = )",
                                    follows, R"((p)
  return y
}
)");
    const Graph graph = driver::run_pipeline(
        parse_graph(text, all_ops()),
        driver::pipeline_for(driver::parse_target(concat("cuda:", architecture))));
    std::vector<std::string> names;
    for (const TaskList::Task& task :
         codegen::select(graph, options_for({.architecture = architecture})).tasks.tasks)
      names.push_back(task.alternatives.front().candidate);
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(candidates("sm_80", "gelu"), Names{"mma"});
  EXPECT_EQ(candidates("sm_90", "gelu"), (Names{"cublaslt", "loops"}));
  EXPECT_EQ(candidates("sm_90a", "gelu"), Names{"wgmma"});
  EXPECT_EQ(candidates("sm_80", "relu"), Names{"cublaslt"});
  EXPECT_EQ(candidates("sm_75", "gelu"), (Names{"cublaslt", "loops"}));
}

}  // namespace
}  // namespace tenon::cuda_mma_test
