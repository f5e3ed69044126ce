// Kernels of our own on tensor cores, emulated as `cuda_test.cpp` does.
#include "codegen/cuda/product.h"
#include "codegen/cuda/select.h"
#include "codegen/select.h"
#include "cuda_emulation.h"
#include "driver/compile.h"
#include "driver/pipeline.h"
#include "driver/verify/trial_inputs.h"
#include "ir/text.h"
#include "ops/registry.h"
#include "tasks/task_list.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tenon::cuda_test {
namespace {

using testing::expect_as_reference;
using testing::has_compiler;

// What computes a graph on an emulated device, which gives what the reference does.
TaskList emulated_tasks(const std::string& text) {
  const Graph graph = run_pipeline(parse_graph(text, all_ops()), pipeline_for("cuda", ""));
  codegen::CompileOptions options = cpu_options();
  options.device = testing::emulated_target();
  if (has_compiler()) {
    expect_as_reference(graph, trial_inputs(graph, {TrialKind::Ordinary, TrialKind::Ordinary, 1}),
                        text);
  }
  return codegen::select(graph, options);
}

// Rows of two axes, edges within a tile, weights either way round, what a library takes along and
// what it does not.
TEST(CudaTensorCores, ProductsTakeAnyEpilogueAlong) {
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
      R"(graph (x: f16[n, 16]) {
  w = constant f16[16, 128] normal(seed = 3, mean = 0.0, deviation = 0.5)
  p = matmul(x, w)
  y = sigmoid(p)
  return y
}
)"};
  for (const std::string& text : graphs) {
    const TaskList list = emulated_tasks(text);
    EXPECT_EQ(list.tasks.back().ways.front().candidate, "wgmma") << text;
  }
}

// Sums over pieces of the batch that do not come out even, zeros around images and none, windows of
// fewer rows, several tiles of outputs and channels, a batch that the run decides.
TEST(CudaTensorCores, GradientsOfWeightsAreSummedInPieces) {
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
)"};
  for (const std::string& text : graphs) {
    const TaskList list = emulated_tasks(text);
    ASSERT_EQ(list.tasks.size(), 2U) << text;
    EXPECT_EQ(list.tasks.front().ways.front().candidate, "wgmma") << text;
    for (const TaskList::Kernel& kernel : list.kernels)
      EXPECT_EQ(kernel.maps.size(), kernel.threads == 512 ? 2U : 0U) << text;
  }
  // Where digits may not be dropped, none are.
  codegen::CompileOptions options = cpu_options();
  options.device = codegen::cuda::Target{.architecture = "sm_90a"};
  const TaskList exact = codegen::select(parse_graph(graphs.front(), all_ops()), options);
  for (const TaskList::Task& task : exact.tasks) EXPECT_NE(task.ways.front().candidate, "wgmma");
}

// Strides, dilation, zeros around images and none, tiles that end beyond the last pixel, sums that
// a cluster shares, whatever follows; constant weights, and weights that lie so already.
TEST(CudaTensorCores, ConvolutionsOverFewPixelsAreSharedByClusters) {
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
    EXPECT_EQ(list.tasks.front().ways.front().candidate, "wgmma") << text;
    EXPECT_GT(list.kernels.front().cluster, 1U) << text;
  }
}

// What ends in the type of a large product is computed with it, a sum kept in f32 is not; programs
// say how such kernels read their operands.
TEST(CudaTensorCores, LargeProductsAreFusedWithWhatFollows) {
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
  PipelineOptions pipeline = pipeline_for("cuda", "");
  const Graph graph = run_pipeline(parse_graph(text, all_ops()), pipeline);
  codegen::CompileOptions options = cpu_options();
  options.device = codegen::cuda::Target{"sm_90a"};
  const TaskList list = codegen::select(graph, options);
  std::vector<std::string> candidates;
  for (const TaskList::Task& task : list.tasks) candidates.push_back(task.ways.front().candidate);
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
