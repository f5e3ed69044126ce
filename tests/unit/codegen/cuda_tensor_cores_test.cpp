// wgmma kernels with TMA pipelines for sm_90a, emulated as in `cuda_test.cpp`.
#include "base/error.h"
#include "codegen/compile.h"
#include "codegen/cuda/gemm.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/cuda/select.h"
#include "codegen/select.h"
#include "cuda_emulation.h"
#include "driver/compile.h"
#include "driver/pipeline.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"
#include "tasks/task_list.h"
#include "testing/verify/trial_inputs.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tenon::cuda_test {
namespace {

class CudaTensorCores : public testing::EmulatedDeviceTest {};

using testing::expect_as_reference;

// Compiles a graph for the emulated device, compares its results with the reference, and returns
// the selected tasks.
TaskList emulated_tasks(const std::string& text, const std::string& precision = "") {
  const Graph graph = driver::run_pipeline(
      parse_graph(text, all_ops()), driver::pipeline_for(driver::parse_target("cuda", precision)));
  codegen::CompileOptions options = driver::cpu_options();
  options.target = codegen::cuda::cuda_target(testing::emulated_target());
  expect_as_reference(
      graph,
      testing::trial_inputs(graph, {testing::TrialKind::Ordinary, testing::TrialKind::Ordinary, 1}),
      text);
  return codegen::select(graph, options).tasks;
}

// Returns the bytes of the first output; empty if the run ends in an error.
std::vector<std::byte> outcome(Program program, const std::vector<Tensor>& inputs) {
  try {
    const std::vector<Tensor> outputs = testing::run_emulated(std::move(program), inputs);
    const std::span<const std::byte> bytes = outputs.front().bytes();
    return {bytes.begin(), bytes.end()};
  } catch (const Error&) {
    return {};
  }
}

// Two row axes, partial tiles, transposed weights, and epilogues with and without support in
// cuBLASLt.
TEST_F(CudaTensorCores, GemmsWithEpilogues) {
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
      R"(graph (x: f16[n, s, 64]) {
  w = constant f16[64, 128] normal(seed = 3, mean = 0.0, deviation = 0.2)
  p = matmul(x, w)
  y = gelu(p)
  return y
}
)",
      // The result may overwrite the residual.
      R"(graph (x: f16[5, 30, 64], z: f16[5, 30, 136]) {
  w = constant f16[64, 136] normal(seed = 3, mean = 0.0, deviation = 0.2)
  r = tanh(z)
  p = matmul(x, w)
  s = add(p, r)
  y = tanh(s)
  return y
}
)"};
  for (const std::string& text : graphs) {
    const TaskList list = emulated_tasks(text);
    EXPECT_TRUE(std::ranges::any_of(list.tasks, [](const TaskList::Task& task) {
      return task.alternatives.front().candidate == "wgmma";
    })) << text;
  }
}

// Weight gradients with split-K over the batch: uneven splits, images with and without padding,
// windows of fewer rows, several tiles of outputs and channels, a symbolic batch.
TEST_F(CudaTensorCores, WeightGradientsWithSplitK) {
  const std::vector<std::string> graphs = {
      R"(graph (x: f32[3, 7, 23, 64]@NHWC, dy: f32[3, 5, 21, 128]@NHWC, w: f32[128, 64, 3, 3]) {
  dw = conv_weight_gradient(x, dy) {kernel_shape = [3, 3]}
  y = sub(w, dw)
  return y
}
)",
      R"(graph (x: f32[n, 4, 30, 128]@NHWC, dy: f32[n, 5, 31, 64]@NHWC) {
  dw = conv_weight_gradient(x, dy) {kernel_shape = [2, 3], pads = [1, 2, 1, 1]}
  return dw
}
)",
      // Rows of several images in one tile; the last image's lack neighbours.
      R"(graph (x: f32[6, 2, 13, 64]@NHWC, dy: f32[6, 2, 13, 64]@NHWC) {
  dw = conv_weight_gradient(x, dy) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}
  return dw
}
)",
      // A window in four parts; a partial tile of outputs.
      R"(graph (x: f32[3, 3, 27, 64]@NHWC, dy: f32[3, 3, 27, 48]@NHWC) {
  dw = conv_weight_gradient(x, dy) {kernel_shape = [5, 5], pads = [2, 2, 2, 2]}
  return dw
}
)",
      // A window in six parts, of fewer rows than columns; a partial tile of channels; several
      // strips.
      R"(graph (x: f32[2, 4, 68, 100]@NHWC, dy: f32[2, 2, 64, 64]@NHWC) {
  dw = conv_weight_gradient(x, dy) {kernel_shape = [4, 7], pads = [1, 0, 0, 2]}
  return dw
}
)"};
  for (const std::string& text : graphs) {
    const TaskList list = emulated_tasks(text);
    ASSERT_EQ(list.tasks.size(), 2U) << text;
    EXPECT_EQ(list.tasks.front().alternatives.front().candidate, "wgmma") << text;
    for (const TaskList::Kernel& kernel : list.kernels)
      EXPECT_EQ(kernel.maps.size(), kernel.threads == 512 ? 2U : 0U) << text;
  }
  codegen::CompileOptions options = driver::cpu_options();
  // With few channels, in a copy that moves the positions within a stride into channels.
  options.target = codegen::cuda::cuda_target(testing::emulated_target());
  const TaskList folded =
      codegen::select(
          parse_graph(R"(graph (x: f32[16, 135, 135, 3]@NHWC, dy: f32[16, 32, 32, 64]@NHWC) {
  dw = conv_weight_gradient(x, dy) {kernel_shape = [11, 11], strides = [4, 4]}
  return dw
}
)",
                      all_ops()),
          options)
          .tasks;
  EXPECT_TRUE(std::ranges::any_of(folded.tasks, [](const TaskList::Task& task) {
    return task.alternatives.front().candidate == "wgmma";
  }));
  // Without permission for TF32 the product stays exact.
  options.target = codegen::cuda::cuda_target({.architecture = "sm_90a"});
  const TaskList exact = codegen::select(parse_graph(graphs.front(), all_ops()), options).tasks;
  for (const TaskList::Task& task : exact.tasks)
    EXPECT_NE(task.alternatives.front().candidate, "wgmma");
}

// The emulation's compiler accepts more than the device's.
TEST_F(CudaTensorCores, CompilesWithNvrtc) {
  const std::string text =
      R"(graph (x: f32[64, 27, 27, 64]@NHWC, dy: f32[64, 27, 27, 64]@NHWC, w: f32[64, 64, 3, 3], rows: f32[32768, 32]) {
  dw = conv_weight_gradient(x, dy) {kernel_shape = [5, 5], pads = [2, 2, 2, 2]}
  c = conv(x, w) {pads = [1, 1, 1, 1], out_layout = "NHWC"}
  dx = lrn_gradient(c, dy) {size = 5, alpha = 0.5}
  s = softmax(rows) {axis = -1}
  return dw, dx, s
}
)";
  codegen::CompileOptions options = driver::cpu_options();
  options.target = codegen::cuda::cuda_target(
      {.architecture = "sm_90a", .allows_tf32 = true, .prefers_tensor_cores = true});
  const Graph graph = driver::run_pipeline(
      parse_graph(text, all_ops()), driver::pipeline_for(driver::parse_target("cuda", "tf32")));
  try {
    codegen::cuda::compiler_name();
  } catch (const Error&) {
    GTEST_SKIP() << "no NVRTC";
  }
  const Program program = codegen::compile(graph, options).program;
  EXPECT_FALSE(program.code.empty());
  EXPECT_EQ(std::ranges::count_if(program.steps,
                                  [](const auto& step) { return step.candidate == "wgmma"; }),
            2);
}

// Strides, dilation, images with and without padding, tiles that end past the last pixel, a
// reduction split over a cluster, epilogues; constant weights, and weights already in the kernel's
// order.
TEST_F(CudaTensorCores, ConvolutionsWithClusterSplitK) {
  const std::vector<std::string> graphs = {
      R"(graph (x: f16[1, 9, 11, 64]@NHWC, z: f16[1, 7, 9, 64]@NHWC) {
  w = constant f16[64, 64, 3, 3] normal(seed = 3, mean = 0.0, deviation = 0.1)
  c = conv(x, w) {out_layout = "NHWC"}
  s = add(c, z)
  y = relu(s)
  return y
}
)",
      R"(graph (x: bf16[2, 10, 9, 128]@NHWC) {
  w = constant bf16[64, 128, 2, 3] normal(seed = 4, mean = 0.0, deviation = 0.1)
  b = constant bf16[64] normal(seed = 5, mean = 0.0, deviation = 1.0)
  c = conv(x, w, b) {strides = [2, 3], pads = [1, 1, 0, 1], dilations = [2, 1], out_layout = "NHWC"}
  y = relu(c)
  return y
}
)"};
  for (const std::string& text : graphs) {
    const TaskList list = emulated_tasks(text);
    ASSERT_EQ(list.tasks.size(), 1U) << text;
    EXPECT_EQ(list.tasks.front().alternatives.front().candidate, "wgmma") << text;
    EXPECT_GT(list.kernels.front().cluster, 1U) << text;
  }
}

// Tiles of 128 pixels that cross rows and images, partial last tiles, strides, dilation, images
// with and without padding, partial tiles of outputs, a symbolic batch, 16-bit floats and f32; with
// epilogues.
TEST_F(CudaTensorCores, ConvolutionsAsImplicitGemm) {
  const std::vector<std::string> graphs = {
      R"(graph (x: f16[n, 9, 11, 64]@NHWC, z: f16[n, 9, 11, 64]@NHWC) {
  w = constant f16[64, 64, 3, 3] normal(seed = 3, mean = 0.0, deviation = 0.1)
  c = conv(x, w) {pads = [1, 1, 1, 1], out_layout = "NHWC"}
  s = add(c, z)
  y = relu(s)
  return y
}
)",
      R"(graph (x: bf16[3, 14, 13, 128]@NHWC) {
  w = constant bf16[136, 128, 2, 3] normal(seed = 4, mean = 0.0, deviation = 0.1)
  b = constant bf16[136] normal(seed = 5, mean = 0.0, deviation = 1.0)
  c = conv(x, w, b) {strides = [1, 3], pads = [1, 1, 0, 1], dilations = [2, 1], out_layout = "NHWC"}
  y = sigmoid(c)
  return y
}
)",
      R"(graph (x: f32[n, 7, 12, 32]@NHWC) {
  w = constant f32[24, 32, 1, 1] normal(seed = 4, mean = 0.0, deviation = 0.1)
  c = conv(x, w) {strides = [2, 2], out_layout = "NHWC"}
  y = gelu(c)
  return y
}
)",
      R"(graph (x: f32[2, 9, 12, 64]@NHWC) {
  w = constant f32[40, 64, 3, 3] normal(seed = 4, mean = 0.0, deviation = 0.1)
  y = conv(x, w) {out_layout = "NHWC"}
  return y
}
)"};
  for (const std::string& text : graphs) {
    const TaskList list = emulated_tasks(text);
    EXPECT_TRUE(std::ranges::any_of(list.kernels, [](const TaskList::Kernel& kernel) {
      return kernel.maps.size() == 2 && kernel.maps.front().places.size() == 2 &&
             kernel.threads == codegen::cuda::kProductThreads && kernel.cluster == 0;
    })) << to_string(list);
    EXPECT_EQ(to_string(parse_tasks(to_string(list))), to_string(list)) << text;
  }
}

// f32 uses tensor cores if TF32 is allowed.
TEST_F(CudaTensorCores, GemmsInTF32) {
  const std::string text = R"(graph (x: f32[70, 40], w: f32[24, 40]) {
  t = transpose(w) {perm = [1, 0]}
  p = matmul(x, t)
  y = tanh(p)
  return y
}
)";
  EXPECT_EQ(emulated_tasks(text).tasks.back().alternatives.front().candidate, "wgmma");
  codegen::CompileOptions options = driver::cpu_options();
  options.target = codegen::cuda::cuda_target({.architecture = "sm_90a", .uses_libraries = false});
  const TaskList exact = codegen::select(parse_graph(text, all_ops()), options).tasks;
  for (const TaskList::Task& task : exact.tasks)
    EXPECT_NE(task.alternatives.front().candidate, "wgmma");
}

// Signed and unsigned bytes, weights transposed at compile time and weights already in order, a
// symbolic number of rows, partial tiles; epilogues that end in bytes, integers and floats.
TEST_F(CudaTensorCores, Int8GemmsAreExact) {
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
      R"(graph (x: u8[130, 80]) {
  w = constant u8[80, 16] uniform(seed = 5, low = 0, high = 255)
  p = matmul(x, w) {out_dtype = i32}
  y = cast(p) {to = f32}
  return y
}
)"};
  for (const std::string& text : graphs) {
    const TaskList list = emulated_tasks(text, "int8");
    EXPECT_EQ(list.tasks.back().alternatives.front().candidate, "wgmma") << text;
  }
}

// An int8 product with bias, residual and relu, requantized to bytes.
std::string bytes_beside_sums(int rows, int columns, const char* added, const char* type,
                              int zero) {
  return concat("graph (x: u8[", rows, ", 64], r: ", added, "[", rows, ", ", columns,
                "]) {\n  w8 = constant i8[64, ", columns,
                "] uniform(seed = 3, low = -127, high = 127)\n  b = constant f32[", columns,
                "] normal(seed = 4, mean = 0.0, deviation = 0.5)\n  y_zero = constant ", type,
                "[] ", zero, "\n  added_zero = constant ", added[0] == 'f' ? "u8" : added,
                R"([] 9
  scale = constant f32[] 0.0303
  zero = constant u8[] 119
  weight_scale = constant f32[] 0.0041
  weight_zero = constant i8[] 0
  y_scale = constant f32[] 0.0217
  xr = dequantize_linear(x, scale, zero)
  wr = dequantize_linear(w8, weight_scale, weight_zero)
  p = matmul(xr, wr)
  s = add(p, b)
)",
                added[0] == 'f'
                    ? "  t = add(s, r)\n"
                    : "  rr = dequantize_linear(r, scale, added_zero)\n  t = add(s, rr)\n",
                "  y = relu(t)\n  z = quantize_linear(y, y_scale, y_zero)\n  return z\n}\n");
}

// The residual of int8 products is loaded one tile ahead and shuffled to the accumulators' layout:
// few columns, several tiles of them, partial tiles, signed and unsigned bytes, floats.
TEST_F(CudaTensorCores, Int8ResidualsAreBitIdentical) {
  const std::vector<std::string> graphs = {
      bytes_beside_sums(300, 40, "u8", "u8", 0), bytes_beside_sums(300, 200, "u8", "u8", 7),
      bytes_beside_sums(150, 256, "i8", "i8", -7), bytes_beside_sums(300, 136, "f32", "u8", 3)};
  for (const std::string& text : graphs) {
    const Graph made = driver::run_pipeline(
        parse_graph(text, all_ops()), driver::pipeline_for(driver::parse_target("cuda", "int8")));
    const std::vector<Datum> inputs = testing::trial_inputs(
        made, {testing::TrialKind::Ordinary, testing::TrialKind::Ordinary, 1});
    std::vector<Tensor> tensors;
    for (const Datum& input : inputs) tensors.push_back(input.tensor());
    const Program program = testing::compile_emulated(made);
    const std::string source(reinterpret_cast<const char*>(program.code.data()),
                             program.code.size());
    EXPECT_NE(source.find("8, true>(&map_a"), std::string::npos) << text;
    const std::vector<std::byte> bytes = outcome(program, tensors);
    const Tensor right = reference::evaluate(made, inputs).front().tensor();
    EXPECT_TRUE(std::ranges::equal(bytes, right.bytes())) << text;
  }
}

// NVRTC is stricter than other compilers: functions without __device__ do not exist for it.
TEST_F(CudaTensorCores, Int8KernelsCompileWithNvrtc) {
  try {
    codegen::cuda::compiler_name();
  } catch (const Error&) {
    GTEST_SKIP() << "no NVRTC";
  }
  codegen::CompileOptions options = driver::cpu_options();
  options.target = codegen::cuda::cuda_target(
      {.architecture = "sm_90a", .has_int8_multiply_add = true, .uses_libraries = false});
  for (const std::string& text :
       {bytes_beside_sums(300, 40, "u8", "i8", 3), bytes_beside_sums(300, 136, "f32", "u8", 0),
        std::string("graph (x: f16[300, 64], w: f16[64, 136]) {\n  p = matmul(x, w)\n  y = "
                    "tanh(p)\n  return y\n}\n")}) {
    const Graph graph = driver::run_pipeline(
        parse_graph(text, all_ops()), driver::pipeline_for(driver::parse_target("cuda", "int8")));
    const Program program = codegen::compile(graph, options).program;
    EXPECT_FALSE(program.code.empty()) << text;
    EXPECT_TRUE(std::ranges::any_of(program.kernels, [](const Program::Kernel& kernel) {
      return !kernel.maps.empty();
    })) << text;
  }
}

// Channels that do not fill 128 bytes, strides, 1x1 windows, padding other than zero (by a copy),
// epilogues.
TEST_F(CudaTensorCores, Int8ConvolutionsAreExact) {
  const auto graph = [](const char* shape, const char* weights, const char* zero,
                        const char* attributes) {
    return concat("graph (x: f32[", shape, "]) {\n  w8 = constant i8[", weights,
                  "] uniform(seed = 3, low = -127, high = 127)\n  scale = constant f32[] 0.03\n  "
                  "zero = constant u8[] ",
                  zero, R"(
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
  };
  const std::vector<std::string> graphs = {
      graph("1, 80, 7, 9", "64, 80, 3, 3", "0", "pads = [1, 1, 1, 1]"),
      graph("2, 16, 9, 8", "64, 16, 1, 1", "119", "strides = [2, 2]"),
      graph("1, 144, 6, 5", "64, 144, 3, 2", "119", "pads = [1, 0, 1, 1], strides = [2, 1]"),
      // Few channels: window positions are folded into channels.
      graph("1, 3, 22, 21", "64, 3, 7, 7", "119", "pads = [3, 3, 3, 3], strides = [2, 2]")};
  for (const std::string& text : graphs) {
    const TaskList list = emulated_tasks(text, "int8");
    EXPECT_TRUE(std::ranges::any_of(list.tasks, [](const TaskList::Task& task) {
      return task.alternatives.front().candidate == "wgmma";
    })) << text;
  }
}

// The emulation detects the data races of a device: a stage read before its copy arrived, a stage
// overwritten during a read, accumulators read before wgmma finished.
TEST_F(CudaTensorCores, DetectsMissingWaits) {
  const Graph graph = parse_graph(R"(graph (x: f16[16, 640]) {
  w = constant f16[640, 8] normal(seed = 3, mean = 0.0, deviation = 0.5)
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
  const Program program = testing::compile_emulated(graph);
  const std::vector<std::byte> expected = outcome(program, inputs);
  ASSERT_FALSE(expected.empty());
  const std::string source(reinterpret_cast<const char*>(program.code.data()), program.code.size());
  for (const std::string wait : {"await(full + 8 * stage, phase);",
                                 "await(empty + 8 * stage, phase);", "await_sums<0>();"}) {
    std::string without = source;
    const std::size_t at = without.find(wait);
    ASSERT_NE(at, std::string::npos) << wait;
    without.erase(at, wait.size());
    Program broken = program;
    const auto* bytes = reinterpret_cast<const std::byte*>(without.data());
    broken.code.assign(bytes, bytes + without.size());
    EXPECT_NE(outcome(std::move(broken), inputs), expected) << wait;
  }
}

// Blocks of a cluster split the reduction and multicast pixels. If shared memory holds fewer stages
// than the reduction has, a stage is reused once every block that copies into it has received the
// release of its readers.
TEST_F(CudaTensorCores, ReusesMulticastStages) {
  const std::string text = R"(graph (x: f16[1, 6, 13, 128]@NHWC) {
  w = constant f16[128, 128, 3, 3] normal(seed = 3, mean = 0.0, deviation = 0.1)
  y = conv(x, w) {pads = [1, 1, 1, 1], out_layout = "NHWC"}
  return y
}
)";
  EXPECT_EQ(emulated_tasks(text).kernels.front().cluster, 8U);
  const Graph graph = parse_graph(text, all_ops());
  std::vector<Tensor> inputs;
  for (const Datum& input : testing::trial_inputs(
           graph, {testing::TrialKind::Ordinary, testing::TrialKind::Ordinary, 1}))
    inputs.push_back(input.tensor());
  const Program program = testing::compile_emulated(graph);
  const std::vector<std::byte> expected = outcome(program, inputs);
  ASSERT_FALSE(expected.empty());
  const std::string source(reinterpret_cast<const char*>(program.code.data()), program.code.size());
  const auto replaced = [&](std::string_view part, std::string_view by) {
    std::string other = source;
    const std::size_t at = other.find(part);
    EXPECT_NE(at, std::string::npos) << part;
    other.replace(at, part.size(), by);
    Program made = program;
    const auto* bytes = reinterpret_cast<const std::byte*>(other.data());
    made.code.assign(bytes, bytes + other.size());
    return outcome(std::move(made), inputs);
  };
  EXPECT_EQ(
      replaced("convolution_tile<FormatF16, 4, 2, 5,", "convolution_tile<FormatF16, 4, 2, 2,"),
      expected);
  EXPECT_NE(replaced("await_sent(sent);", ""), expected);
  EXPECT_NE(replaced("pass_cluster();\n  if (BESIDE > 1) {\n    await_cluster();",
                     "pass_cluster();\n  if (BESIDE > 1) {\n"),
            expected);
}

// An epilogue that ends in the element type of a large product is fused; one that ends in f32 is
// not. The printed program states how such kernels read their operands.
TEST_F(CudaTensorCores, LargeGemmsFuseEpilogues) {
  const std::string text = R"(graph (x: f16[32, 128, 768], r: f32[32, 128, 3072]) {
  w = constant f16[768, 3072] normal(seed = 1, mean = 0.0, deviation = 0.05)
  b = constant f16[3072] normal(seed = 2, mean = 0.0, deviation = 0.5)
  p = matmul(x, w)
  s = add(p, b)
  f = cast(s) {to = f32}
  g = gelu(f)
  y = cast(g) {to = f16}
  w2 = constant f16[768, 3072] normal(seed = 5, mean = 0.0, deviation = 0.05)
  p2 = matmul(x, w2)
  f2 = cast(p2) {to = f32}
  z = add(f2, r)
  return y, z
}
)";
  driver::PipelineOptions pipeline = driver::pipeline_for(driver::parse_target("cuda"));
  const Graph graph = driver::run_pipeline(parse_graph(text, all_ops()), pipeline);
  codegen::CompileOptions options = driver::cpu_options();
  options.target = codegen::cuda::cuda_target({"sm_90a"});
  const TaskList list = codegen::select(graph, options).tasks;
  std::vector<std::string> candidates;
  for (const TaskList::Task& task : list.tasks)
    candidates.push_back(task.alternatives.front().candidate);
  std::ranges::sort(candidates);
  EXPECT_EQ(candidates, (std::vector<std::string>{"cublaslt", "loops", "wgmma"}));
  const auto product = std::ranges::find_if(
      list.kernels, [](const TaskList::Kernel& kernel) { return !kernel.maps.empty(); });
  ASSERT_NE(product, list.kernels.end());
  ASSERT_EQ(product->maps.size(), 2u);
  EXPECT_EQ(product->maps[0].rows, Dim(4096));
  EXPECT_EQ(product->maps[1].extents, std::vector<std::uint64_t>{3072});
  EXPECT_EQ(product->shared_bytes, codegen::cuda::kProductSharedBytes);
}

}  // namespace
}  // namespace tenon::cuda_test
