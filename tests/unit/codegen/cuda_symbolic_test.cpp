// Contractions and reductions of networks that PyTorch exports with symbolic batches, sizes and
// lengths: their kernels on the emulated device, and the kernels that selection chooses.
#include "codegen/cuda/binding.h"
#include "codegen/cuda/select.h"
#include "codegen/select.h"
#include "cuda_emulation.h"
#include "driver/compile.h"
#include "driver/pipeline.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "ops/definition/registry.h"
#include "tasks/task_list.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tenon::cuda_test {
namespace {

class CudaSymbolic : public testing::EmulatedDeviceTest {};

using Shapes = std::map<std::string, Shape>;

TaskList tasks_of(const std::string& text) {
  codegen::CompileOptions options = driver::cpu_options();
  options.target = codegen::cuda::cuda_target({"sm_90a"});
  return codegen::select(parse_graph(text, all_ops()), options).tasks;
}

// Returns each task's candidate, with the extents of library calls.
std::vector<std::string> calls_in(const TaskList& list) {
  std::vector<std::string> calls;
  for (const TaskList::Task& task : list.tasks) {
    const TaskList::Alternative& first = task.alternatives.front();
    std::string call = first.candidate;
    for (const Dim& extent : first.calls.front().extents) {
      if (!list.kernels[first.calls.front().kernel].library.empty())
        call += " " + to_string(extent);
    }
    calls.push_back(std::move(call));
  }
  return calls;
}

codegen::cuda::GridBinding binding_of(const TaskList& list, std::size_t kernel) {
  return codegen::cuda::bind(list.kernels[kernel].nest, {"sm_90a"});
}

// Runs the graph with kernels and library calls on the emulated device.
void expect_as_reference(const std::string& text, const Shapes& shapes) {
  const Graph graph = parse_graph(text, all_ops());
  codegen::CompileOptions options = driver::cpu_options();
  codegen::cuda::CudaTarget device = testing::emulated_target();
  device.uses_libraries = true;
  device.uses_tensor_cores = false;
  options.target = codegen::cuda::cuda_target(device);
  testing::expect_as_reference(codegen::compile(graph, options).program, graph,
                               models::random_inputs(graph, 1, shapes), text);
}

// Weights of a depthwise convolution are packed with channels innermost: a thread computes eight
// neighbouring channels by vector loads.
TEST_F(CudaSymbolic, DepthwiseConvolutionsReadNeighbouringChannels) {
  const std::string text = R"(graph (x: f16[N, H, W, 24]@NHWC) {
  w = constant f16[24, 1, 3, 3] normal(seed = 1, mean = 0.0, deviation = 0.1)
  y = conv(x, w) {groups = 24, strides = [2, 1], pads = [1, 1, 1, 1], out_layout = "NHWC"}
  return y
}
)";
  const TaskList list = tasks_of(text);
  ASSERT_EQ(calls_in(list), std::vector<std::string>{"loops"});
  const codegen::cuda::GridBinding binding = binding_of(list, 0);
  EXPECT_EQ(binding.lanes, 8U);
  EXPECT_EQ(binding.group, 1U);
  expect_as_reference(text, {{"x", {2, 9, 7, 24}}});
}

// The relu of a grouped convolution runs over all channels, the convolution over groups: one
// kernel.
TEST_F(CudaSymbolic, GroupedConvolutionsFuseTheirEpilogue) {
  const std::string text = R"(graph (x: f16[N, H, W, 32]@NHWC) {
  w = constant f16[32, 16, 3, 3] normal(seed = 1, mean = 0.0, deviation = 0.1)
  z = fused(x, w) group = graph (x: f16[N, H, W, 32]@NHWC, w: f16[32, 16, 3, 3]) {
    y = conv(x, w) {groups = 2, pads = [1, 1, 1, 1], out_layout = "NHWC"}
    z = relu(y)
    return z
  }
  return z
}
)";
  const TaskList list = tasks_of(text);
  ASSERT_EQ(list.tasks.size(), 1U);
  expect_as_reference(text, {{"x", {1, 6, 5, 32}}});
}

// Windows that do not overlap are rows of a GEMM, padded to whole vectors; their image may have any
// size.
TEST_F(CudaSymbolic, PatchEmbeddingsAreGemms) {
  EXPECT_EQ(
      calls_in(tasks_of(R"(graph (x: f16[N, 224, 224, 3]@NHWC) {
  w = constant f16[768, 3, 16, 16] normal(seed = 1, mean = 0.0, deviation = 0.1)
  y = conv(x, w) {strides = [16, 16], out_layout = "NHWC"}
  return y
}
)")),
      (std::vector<std::string>{"loops", "cublaslt 1 196*N 768 768 768 0 768 0 768 0 768 0"}));
  const std::string text =
      R"(graph (x: f16[N, H, W, 3]@NHWC, z: f32[N, 40, H, W], v: f16[N, 8, L]) {
  w = constant f16[32, 3, 7, 7] normal(seed = 1, mean = 0.0, deviation = 0.1)
  u = constant f32[16, 40, 2, 2] normal(seed = 2, mean = 0.0, deviation = 0.1)
  t = constant f16[64, 8, 3] normal(seed = 3, mean = 0.0, deviation = 0.1)
  patches = conv(x, w) {strides = [7, 7], out_layout = "NHWC"}
  halves = conv(z, u) {strides = [2, 2]}
  thirds = conv(v, t) {strides = [3]}
  return patches, halves, thirds
}
)";
  expect_as_reference(text, {{"x", {2, 30, 22, 3}}, {"z", {2, 40, 30, 22}}, {"v", {2, 8, 20}}});
}

// The first layer of a network has few channels: its windows are copied to rows of a GEMM, whatever
// the size of the image.
TEST_F(CudaSymbolic, FewChannelsAreRowsOfAGemm) {
  const std::string text = R"(graph (x: f16[N, H, W, 3]@NHWC) {
  w = constant f16[32, 3, 3, 3] normal(seed = 1, mean = 0.0, deviation = 0.1)
  y = conv(x, w) {strides = [2, 2], pads = [1, 1, 1, 1], out_layout = "NHWC"}
  return y
}
)";
  const std::vector<std::string> calls = calls_in(tasks_of(text));
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_TRUE(calls.back().starts_with("cublaslt ")) << calls.back();
  expect_as_reference(text, {{"x", {2, 17, 20, 3}}});
}

// Windows over one channel overlap: they are no rows of a matrix.
TEST_F(CudaSymbolic, OverlappingWindowsOfOneChannelAreCopied) {
  const std::string text = R"(graph (x: f16[N, 1, 400]) {
  w = constant f16[32, 1, 10] normal(seed = 1, mean = 0.0, deviation = 0.1)
  y = conv(x, w) {strides = [5]}
  return y
}
)";
  const std::vector<std::string> calls = calls_in(tasks_of(text));
  EXPECT_EQ(calls.front(), "loops");
  expect_as_reference(text, {{"x", {2, 1, 400}}});
}

// Products of one row and one column are sums: a library would start a kernel per number.
TEST_F(CudaSymbolic, SumsOfSquaresAreNoProducts) {
  const std::string text = R"(graph (x: f16[N, 4, 64], y: f16[N, 4, 64]) {
  p = mul(x, y)
  s = reduce_sum(p) {axes = [2], keep_axes = true}
  return s
}
)";
  for (const std::string& call : calls_in(tasks_of(text))) EXPECT_EQ(call, "loops");
}

// An image and its mean over all positions: a symbolic batch is often 1, and one block per image
// would leave most multiprocessors idle.
TEST_F(CudaSymbolic, MeansOfImagesAreKernelsOfTheirOwn) {
  const std::string text = R"(graph (x: f16[N, H, W, 64]) {
  y, m = fused(x) group = graph (x: f16[N, H, W, 64]) {
    y = hard_swish(x)
    m = reduce_mean(y) {axes = [1, 2]}
    return y, m
  }
  return y, m
}
)";
  const TaskList list = tasks_of(text);
  ASSERT_EQ(list.tasks.size(), 2U);
  const codegen::cuda::GridBinding mean = binding_of(list, 1);
  EXPECT_GT(mean.group, 1U);
  EXPECT_EQ(mean.lanes, 8U);
  EXPECT_EQ(mean.items.size(), 2U);
  expect_as_reference(text, {{"x", {2, 9, 33, 64}}});
}

// Mean and variance of rows of positions stay one kernel when the addition before them leaves it.
TEST_F(CudaSymbolic, StatisticsOfGroupsStayTogether) {
  const std::string text = R"(graph (x: f32[N, 32, 16, 16], z: f32[N, 32, 16, 16]) {
  w = constant f32[32] normal(seed = 1, mean = 1.0, deviation = 0.1)
  b = constant f32[32] normal(seed = 2, mean = 0.0, deviation = 0.1)
  y, n = fused(x, z, w, b) group = graph (x: f32[N, 32, 16, 16], z: f32[N, 32, 16, 16], w: f32[32], b: f32[32]) {
    y = add(x, z)
    n = group_norm(y, w, b) {groups = 4}
    return y, n
  }
  return y, n
}
)";
  EXPECT_EQ(tasks_of(text).tasks.size(), 3U);
  expect_as_reference(text, {{"x", {2, 32, 16, 16}}, {"z", {2, 32, 16, 16}}});
}

// Several neighbouring items per thread group; a minimum next to a sum.
TEST_F(CudaSymbolic, GroupsReduceNeighbouringChannels) {
  expect_as_reference(R"(graph (x: f32[N, H, 48], z: f16[3, 500, 20]) {
  total = reduce_sum(x) {axes = [1]}
  least = reduce_min(x) {axes = [1]}
  most = reduce_max(z) {axes = [1]}
  return total, least, most
}
)",
                      {{"x", {2, 700, 48}}});
}

// Grouped-query attention copies keys and values for each query head: the kernel reads the groups'
// instead, for any length.
TEST_F(CudaSymbolic, GroupedQueryAttentionReadsGroups) {
  const std::string text =
      R"(graph (q: f16[N, L, 8, 16], k: f16[N, L, 2, 16], v: f16[N, L, 2, 16]) {
  y = fused(q, k, v) group = graph (q: f16[N, L, 8, 16], k: f16[N, L, 2, 16], v: f16[N, L, 2, 16]) {
    qt = transpose(q) {perm = [0, 2, 1, 3]}
    kt = transpose(k) {perm = [0, 2, 1, 3]}
    vt = transpose(v) {perm = [0, 2, 1, 3]}
    a = attention(qt, kt, vt)
    t = transpose(a) {perm = [0, 2, 1, 3]}
    return t
  }
  return y
}
)";
  EXPECT_EQ(calls_in(tasks_of(text)), std::vector<std::string>{"attention"});
  expect_as_reference(text, {{"q", {2, 70, 8, 16}}, {"k", {2, 70, 2, 16}}, {"v", {2, 70, 2, 16}}});
}

// Queries, keys and values of PyTorch's multi-head attention are one matrix with the batch after
// the length: rows are a symbolic number of elements apart.
TEST_F(CudaSymbolic, AttentionReadsRowsOfASymbolicBatch) {
  const std::string text = R"(graph (x: f16[L, N, 96]) {
  y = fused(x) group = graph (x: f16[L, N, 96]) {
    q, k, v = split(x) {axis = 2, sizes = [32, 32, 32]}
    qr = reshape(q) {shape = [L, N, 2, 16]}
    kr = reshape(k) {shape = [L, N, 2, 16]}
    vr = reshape(v) {shape = [L, N, 2, 16]}
    qt = transpose(qr) {perm = [1, 2, 0, 3]}
    kt = transpose(kr) {perm = [1, 2, 0, 3]}
    vt = transpose(vr) {perm = [1, 2, 0, 3]}
    a = attention(qt, kt, vt)
    t = transpose(a) {perm = [2, 0, 1, 3]}
    return t
  }
  return y
}
)";
  EXPECT_EQ(calls_in(tasks_of(text)), std::vector<std::string>{"attention"});
  expect_as_reference(text, {{"x", {37, 3, 96}}});
}

}  // namespace
}  // namespace tenon::cuda_test
