// CUDA kernels without a device: the same source, compiled as C++ and run by an emulation of blocks
// and threads.
#include "base/error.h"
#include "codegen/cuda/binding.h"
#include "codegen/cuda/library_match.h"
#include "codegen/cuda/select.h"
#include "codegen/select.h"
#include "cuda_emulation.h"
#include "driver/compile.h"
#include "driver/pipeline.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "nests/node_exprs.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"
#include "tasks/task_list.h"
#include "testing/random_graph/random_graph.h"
#include "testing/verify/agreement.h"
#include "testing/verify/trial_inputs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <tuple>

namespace tenon::cuda_test {
namespace {

class Cuda : public testing::EmulatedDeviceTest {};

using testing::expect_as_reference;
using testing::run_emulated;

void expect_as_reference(const std::string& text, std::uint64_t seed = 1) {
  const Graph graph = parse_graph(text, all_ops());
  expect_as_reference(graph,
                      testing::trial_inputs(graph, {testing::TrialKind::Ordinary,
                                                    testing::TrialKind::Ordinary, seed}),
                      text);
}

// One thread, one warp or one block per item; packed loads and stores; scratch in registers and
// shared memory.
TEST_F(Cuda, KernelsMatchTheReference) {
  expect_as_reference(
      R"(graph (x: f32[3, 5, 64], w: f32[64, 24], h: f16[4, 1024], image: f32[1, 10, 10, 32], i: i64[6], b: bool[7], n: i32[9]) {
  w0 = constant f32[64] normal(seed = 3, mean = 1.0, deviation = 0.5)
  w1 = constant f32[64] normal(seed = 4, mean = 0.0, deviation = 0.5)
  three = constant i32[] 3
  softmax = softmax(x) {axis = 2}
  long = softmax(h) {axis = 1}
  norm = layer_norm(x, w0, w1) {axis = -1}
  product = matmul(x, w)
  gelu = gelu(product)
  total = reduce_sum(h) {axes = [0, 1], keep_axes = false}
  most = reduce_max(image) {axes = [1, 2]}
  place = arg_max(x) {axis = 2}
  last = arg_min(h) {axis = 1, select_last = true}
  run = cumsum(x) {axis = 1}
  picture = transpose(image) {perm = [0, 3, 1, 2]}
  pool = max_pool(picture) {kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]}
  rows = gather(w, i) {axis = 0}
  not = logical_not(b)
  parts = concat(x, run) {axis = 1}
  half = cast(x) {to = f8e4m3fn}
  wide = cast(half) {to = f32}
  quotient = mod(n, three)
  doubled = add(h, h)
  positive = abs(x)
  quarter = constant f32[] -1.75
  power = pow(positive, quarter)
  return softmax, long, norm, gelu, total, most, place, last, run, pool, rows, not, parts, wide, quotient, doubled, power
}
)");
}

// Transposed queries, keys and values, fewer of them than a tile; masks; grouped-query attention;
// extents that are not multiples of an mma fragment.
TEST_F(Cuda, FusesAttention) {
  const std::vector<std::string> graphs = {
      R"(graph (q: f16[2, 66, 1, 16], k: f16[2, 1, 77, 16], v: f16[2, 1, 77, 32], mask: f32[2, 1, 1, 77]) {
  t = transpose(q) {perm = [0, 2, 1, 3]}
  y = attention(t, k, v, mask) {masked_rows = nan}
  return y
}
)",
      R"(graph (q: bf16[1, 4, 20, 24], k: bf16[1, 2, 20, 24], v: bf16[1, 2, 20, 24]) {
  y = attention(q, k, v) {causal = true}
  return y
}
)",
      R"(graph (q: f16[1, 1, 150, 16], k: f16[1, 1, 201, 16], v: f16[1, 1, 201, 16]) {
  y = attention(q, k, v) {causal = true, causal_offset = 30}
  return y
}
)",
      R"(graph (q: f16[1, 2, 9, 128], k: f16[1, 2, 40, 128], v: f16[1, 2, 40, 128], mask: bool[9, 40]) {
  y = attention(q, k, v, mask) {scale = 0.25, softcap = 3}
  return y
}
)",
      R"(graph (q: f16[1, 2, 70, 16], k: f16[1, 1, 90, 16], v: f16[1, 1, 90, 16]) {
  y = attention(q, k, v) {causal = true, causal_offset = 20, left_window = 12}
  return y
}
)"};
  for (const std::string& text : graphs) {
    expect_as_reference(text);
    codegen::CompileOptions options = driver::cpu_options();
    options.target = codegen::cuda::cuda_target(
        {.architecture = "sm_90a", .uses_libraries = false, .is_emulated = true});
    const Graph graph = parse_graph(text, all_ops());
    const TaskList list = codegen::select(graph, options).tasks;
    EXPECT_EQ(list.tasks.back().alternatives.front().candidate, "attention") << text;
  }
}

// Data movement with a reduction in one group: slices of a concat are not copied whole; rows are
// shared, kept in scratch and written twice.
TEST_F(Cuda, FusedGroupsMatchTheReference) {
  const std::string text =
      R"(graph (x: f32[1, 6, 6, 8], z: f32[1, 6, 6, 8], h: f16[3, 5, 256], r: f32[3, 5, 256]) {
  w = constant f32[256] normal(seed = 3, mean = 1.0, deviation = 0.5)
  b = constant f32[256] normal(seed = 4, mean = 0.0, deviation = 0.5)
  both = concat(x, z) {axis = 3}
  turned = transpose(both) {perm = [0, 3, 1, 2]}
  pool = max_pool(turned) {kernel_shape = [3, 3], strides = [2, 2]}
  wide = cast(h) {to = f32}
  sum = add(wide, r)
  norm = layer_norm(sum, w, b) {axis = -1}
  narrow = cast(norm) {to = f16}
  return pool, norm, narrow
}
)";
  const Graph graph = driver::run_pipeline(parse_graph(text, all_ops()),
                                           driver::pipeline_for(driver::parse_target("cuda")));
  expect_as_reference(
      graph,
      testing::trial_inputs(graph, {testing::TrialKind::Ordinary, testing::TrialKind::Ordinary, 1}),
      text);
}

std::string kernel_code(const Graph& graph) {
  const Program program = testing::compile_emulated(graph);
  return {reinterpret_cast<const char*>(program.code.data()), program.code.size()};
}

// Elements of a row read neighbours on one side or on both. A thread loads shared neighbours once
// for all its elements, and distant ones per element.
TEST_F(Cuda, SharesLoadsOfNeighbours) {
  const std::string text =
      R"(graph (x: f32[1, 33, 32, 64]@NHWC, dx: f32[1, 33, 32, 64]@NHWC, z: f32[1, 33, 32, 128]@NHWC, dz: f32[1, 33, 32, 128]@NHWC) {
  a = lrn(x) {size = 5, alpha = 0.5}
  b = lrn_gradient(x, dx) {size = 4, alpha = 0.5}
  c = lrn(z) {size = 7, alpha = 0.5}
  d = lrn_gradient(z, dz) {size = 3, alpha = 0.5}
  e = lrn(x) {size = 7, alpha = 0.5}
  return a, b, c, d, e
}
)";
  const Graph graph = driver::run_pipeline(parse_graph(text, all_ops()),
                                           driver::pipeline_for(driver::parse_target("cuda")));
  expect_as_reference(
      graph,
      testing::trial_inputs(graph, {testing::TrialKind::Ordinary, testing::TrialKind::Ordinary, 1}),
      text);
  const std::string code = kernel_code(graph);
  std::size_t count = 0;
  for (std::size_t at = code.find("= load_near<"); at != std::string::npos;
       at = code.find("= load_near<", at + 1))
    ++count;
  EXPECT_EQ(count, 6U);  // two per gradient
}

// The parts of a weight gradient are summed by one thread per element: a strided single read of the
// weights costs less than uncoalesced reads of the parts.
TEST_F(Cuda, PartialSumsUseOneThreadPerElement) {
  const Graph graph = driver::run_pipeline(
      parse_graph(
          R"(graph (x: f32[128, 13, 13, 384]@NHWC, dy: f32[128, 13, 13, 256]@NHWC, w: f32[3, 3, 384, 256]@HWIO) {
  dw = conv_weight_gradient(x, dy) {kernel_shape = [3, 3], pads = [1, 1, 1, 1], out_layout = "HWIO"}
  y = sub(w, dw)
  return y
}
)",
          all_ops()),
      driver::pipeline_for(driver::parse_target("cuda")));
  const std::string code = kernel_code(graph);
  EXPECT_NE(code.find("weight_gradient_units<3, 3, 56, 4, 14>"), std::string::npos);
  EXPECT_EQ(code.find("fold_group<FoldSum,"), std::string::npos);
}

// A warp reduces several short rows at once; the last warp has fewer, and a block iterates over the
// rest.
TEST_F(Cuda, ShortRowsShareWarps) {
  const std::string text = R"(graph (x: f32[32770, 32], odd: f32[32800, 40]) {
  y = softmax(x) {axis = -1}
  at = arg_max(x) {axis = 1}
  z = softmax(odd) {axis = -1}
  return y, at, z
}
)";
  const Graph graph = driver::run_pipeline(parse_graph(text, all_ops()),
                                           driver::pipeline_for(driver::parse_target("cuda")));
  expect_as_reference(
      graph,
      testing::trial_inputs(graph, {testing::TrialKind::Ordinary, testing::TrialKind::Ordinary, 1}),
      text);
  const std::string code = kernel_code(graph);
  EXPECT_NE(code.find("fold_group<FoldSum, 8>"), std::string::npos);
  EXPECT_NE(code.find("fold_places<true, false, 8>"), std::string::npos);
}

// Scratch with a single use is inlined at the use; both nests may use the same loop numbers.
TEST_F(Cuda, InlinesSingleUseScratch) {
  const std::string text =
      R"(graph (x: f32[2, 2, 2, 3], w: f32[2, 2, 3, 3], z: f32[2, 3, 9, 7], v: f32[3, 2, 2, 2]) {
  c = conv(x, w) {pads = [1, 1, 1, 1]}
  g = gelu(c)
  pool = max_pool(g) {kernel_shape = [2, 2]}
  dz = max_pool_gradient(z, z) {kernel_shape = [1, 1]}
  up = conv_transpose(z, v) {strides = [2, 2], dilations = [2, 1]}
  return pool, dz, up
}
)";
  const Graph graph = driver::run_pipeline(parse_graph(text, all_ops()),
                                           driver::pipeline_for(driver::parse_target("cuda")));
  expect_as_reference(
      graph,
      testing::trial_inputs(graph, {testing::TrialKind::Ordinary, testing::TrialKind::Ordinary, 1}),
      text);
}

// 16-bit factors with a sum in f32, and weight gradients in another layout.
TEST_F(Cuda, MixedPrecisionTrainingCallsLibraries) {
  const Graph graph = driver::run_pipeline(
      parse_graph(
          R"(graph (x: f32[8, 128, 128, 128]@NHWC, dy: f32[8, 128, 128, 256]@NHWC, w: f32[256, 128, 3, 3]) {
  c = conv(x, w) {pads = [1, 1, 1, 1], out_layout = "NHWC"}
  e = exp(c)
  dw = conv_weight_gradient(x, dy) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}
  next = sub(w, dw)
  return e, next
}
)",
          all_ops()),
      driver::pipeline_for(driver::parse_target("cuda", "bf16")));
  codegen::CompileOptions options = driver::cpu_options();
  options.target = codegen::cuda::cuda_target({.architecture = "sm_90a"});
  const TaskList list = codegen::select(graph, options).tasks;
  std::vector<std::string> calls;
  for (const TaskList::Kernel& kernel : list.kernels) {
    if (!kernel.library.empty())
      calls.push_back(kernel.library.substr(0, kernel.library.find("bf16")));
  }
  std::sort(calls.begin(), calls.end());
  ASSERT_EQ(calls.size(), 2U) << print(graph);
  EXPECT_TRUE(calls[0].starts_with("convolution")) << calls[0];
  EXPECT_TRUE(calls[1].starts_with("weight-gradient")) << calls[1];
}

// With and without strides, with weights and results in the layouts of networks.
TEST_F(Cuda, ConvolutionGradientsCallLibraries) {
  const Graph graph = driver::run_pipeline(
      parse_graph(
          R"(graph (x: f32[2, 16, 16, 32]@NHWC, dy: f32[2, 8, 8, 64]@NHWC, w: f32[64, 32, 3, 3], v: f32[32, 16, 3, 3]) {
  dw = conv_weight_gradient(x, dy) {kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]}
  dx = conv_transpose(dy, w) {output_shape = [16, 16], strides = [2, 2], pads = [1, 1, 1, 1], out_layout = "NHWC"}
  dz = conv_transpose(x, v) {output_shape = [16, 16], pads = [1, 1, 1, 1], out_layout = "NHWC"}
  return dw, dx, dz
}
)",
          all_ops()),
      driver::pipeline_for(driver::parse_target("cuda")));
  codegen::CompileOptions options = driver::cpu_options();
  options.target = codegen::cuda::cuda_target({.architecture = "sm_90a"});
  const TaskList list = codegen::select(graph, options).tasks;
  std::vector<std::string> calls;
  for (const TaskList::Task& task : list.tasks) {
    for (const TaskList::Call& call : task.alternatives.front().calls) {
      const std::string& library = list.kernels[call.kernel].library;
      if (!library.empty()) calls.push_back(library.substr(0, library.find(' ')));
    }
  }
  std::sort(calls.begin(), calls.end());
  EXPECT_EQ(calls, (std::vector<std::string>{"data-gradient", "data-gradient", "weight-gradient"}));
}

// Few channels are folded: strided windows, fully unfolded windows (im2col), constant and given
// weights, weight gradients; channels first and last, one channel.
TEST_F(Cuda, FoldsFewChannels) {
  const std::vector<std::string> graphs = {
      R"(graph (x: f16[2, 3, 35, 35], w: f16[8, 3, 11, 11], b: f16[8]) {
  y = conv(x, w, b) {strides = [4, 4], pads = [3, 3, 4, 4]}
  return y
}
)",
      R"(graph (x: f32[1, 1, 130, 131], w: f32[4, 1, 3, 3]) {
  y = conv(x, w) {pads = [1, 1, 1, 1]}
  z = relu(y)
  return z
}
)",
      R"(graph (x: f32[1, 257, 257, 1]@NHWC, dy: f32[1, 129, 129, 2]@NHWC, z: f32[1, 3, 130, 130], dz: f32[1, 2, 129, 129]) {
  dw = conv_weight_gradient(x, dy) {kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]}
  dv = conv_weight_gradient(z, dz) {kernel_shape = [2, 2]}
  return dw, dv
}
)"};
  for (const std::string& text : graphs) {
    expect_as_reference(text);
    codegen::CompileOptions options = driver::cpu_options();
    options.target = codegen::cuda::cuda_target(
        {.architecture = "sm_90a", .uses_libraries = false, .is_emulated = true});
    const TaskList list = codegen::select(parse_graph(text, all_ops()), options).tasks;
    EXPECT_TRUE(std::any_of(list.kernels.begin(), list.kernels.end(), [](const auto& kernel) {
      return kernel.name.ends_with(" depth");
    })) << text;
  }
  // Constant weights are packed at compile time: only the copy of the image and the library call
  // remain.
  codegen::CompileOptions options = driver::cpu_options();
  options.target = codegen::cuda::cuda_target({.architecture = "sm_90a"});
  const TaskList list = codegen::select(parse_graph(R"(graph (x: f16[1, 224, 224, 3]@NHWC) {
  w = constant f16[64, 3, 7, 7] normal(seed = 3, mean = 0.0, deviation = 0.1)
  y = conv(x, w) {strides = [2, 2], pads = [3, 3, 3, 3]}
  return y
}
)",
                                                    all_ops()),
                                        options)
                            .tasks;
  ASSERT_EQ(list.tasks.size(), 2U);
  const TaskList::Call& call = list.tasks.back().alternatives.front().calls.front();
  EXPECT_EQ(call.extents[3], Dim(16));  // channels
  EXPECT_EQ(call.extents[5], Dim(4));   // rows of a window
  EXPECT_GT(call.flops, 0);
  EXPECT_EQ(list.tasks.front().alternatives.front().calls.front().flops, 0);  // of the copy
}

// Long reductions are split, and their parts again.
TEST_F(Cuda, SplitsLongReductions) {
  const std::string text = R"(graph (x: f32[4, 100, 100, 64], z: f32[400000]) {
  rows = reduce_sum(x) {axes = [0, 1, 2], keep_axes = false}
  most = reduce_max(z) {axes = [0], keep_axes = false}
  mean = reduce_mean(z) {axes = [0], keep_axes = false}
  return rows, most, mean
}
)";
  expect_as_reference(text);
  codegen::CompileOptions options = driver::cpu_options();
  options.target = codegen::cuda::cuda_target(
      {.architecture = "sm_90a", .uses_libraries = false, .is_emulated = true});
  const TaskList list = codegen::select(parse_graph(text, all_ops()), options).tasks;
  EXPECT_GE(list.tasks.size(), 6U);
}

TEST_F(Cuda, SymbolicExtents) {
  expect_as_reference(R"(graph (x: f32[N, M, 8], w: f32[8, 6]) {
  y = matmul(x, w)
  z = softmax(y) {axis = 1}
  s = reduce_mean(x) {axes = [0, 1], keep_axes = false}
  t = transpose(x) {perm = [2, 0, 1]}
  return y, z, s, t
}
)");
}

TEST_F(Cuda, ReportsInvalidData) {
  const Graph graph = parse_graph(
      "graph (x: f32[4], i: i64[2]) {\n  y = gather(x, i) {axis = 0}\n  return y\n}\n", all_ops());
  const Tensor x(DType::F32, {4}), far = Tensor::of_integers(std::vector<std::int64_t>{1, 9});
  EXPECT_THROW(run_emulated(graph, {x, far}), Error);
}

TEST_F(Cuda, RandomGraphsMatchTheReference) {
  int compiled = 0;
  for (std::uint64_t seed = 900; compiled < 6; ++seed) {
    const Graph graph = testing::random_graph({seed, 8, false});
    const std::vector<Datum> inputs = testing::trial_inputs(
        graph, {testing::TrialKind::Ordinary, testing::TrialKind::Ordinary, seed});
    if (std::any_of(inputs.begin(), inputs.end(),
                    [](const Datum& input) { return !input.is_tensor(); }))
      continue;
    Graph optimised =
        driver::run_pipeline(graph, driver::pipeline_for(driver::parse_target("cuda")));
    try {
      codegen::CompileOptions options = driver::cpu_options();
      options.target = codegen::cuda::cuda_target(
          {.architecture = "sm_90a", .uses_libraries = false, .is_emulated = true});
      if (!codegen::compile(optimised, options).program.is_kernel_only())
        continue;  // with host operators between kernels
    } catch (const Error&) {
      continue;
    }
    expect_as_reference(optimised, inputs, concat("random:", seed));
    ++compiled;
  }
}

// Returns the library calls that the target selects, by node.
std::vector<std::string> calls_of(const std::string& text) {
  const Graph graph = parse_graph(text, all_ops());
  std::vector<std::string> calls;
  for (const NodeId node : graph.nodes_in_order()) {
    if (graph.constant_of(graph.node(node).results.front()) != nullptr) continue;
    codegen::NestSequence sequence = nests::build_nests("y", nests::node_exprs(graph, node));
    std::vector<bool> is_constant;
    for (const auto& buffer : sequence.buffers) {
      is_constant.push_back(buffer.role == codegen::NestSequence::BufferRole::Operand &&
                            graph.constant_of(graph.node(node).operands.at(buffer.index)) !=
                                nullptr);
    }
    const auto parts = sequence.parts;
    for (const auto& part : parts) {
      for (const auto& kernel :
           codegen::cuda::select_kernels(sequence, part, is_constant, {"sm_90a"})) {
        std::string call = kernel.candidate;
        if (kernel.library) {
          call = to_string(*kernel.library);
          for (const Dim& extent : kernel.library_extents) call += " " + to_string(extent);
        }
        calls.push_back(call);
      }
    }
  }
  return calls;
}

TEST_F(Cuda, GemmsCallLibraries) {
  EXPECT_EQ(
      calls_of("graph (a: f16[4, 32, 64], b: f16[64, 48]) {\n  y = matmul(a, b)\n  return y\n}\n"),
      std::vector<std::string>{"product dtype=f16 result=f16 tf32=0 transpose_a=0 transpose_b=0 "
                               "bias=0 residual=0 rectified=0 "
                               "alpha=1 1 128 48 64 64 0 48 0 48 0 48 0"});
  // Batched operands, the right one transposed in place.
  EXPECT_EQ(calls_of("graph (a: f32[3, 32, 64], b: f32[3, 48, 64]) {\n  y = einsum(a, b) {equation "
                     "= \"bij,bkj->bik\"}\n  return y\n}\n"),
            std::vector<std::string>{"product dtype=f32 result=f32 tf32=0 transpose_a=0 "
                                     "transpose_b=1 bias=0 residual=0 rectified=0 "
                                     "alpha=1 3 32 48 64 64 2048 64 3072 48 1536 48 1536"});
  EXPECT_EQ(calls_of("graph (a: f32[2, 2], b: f32[2, 2]) {\n  y = matmul(a, b)\n  return y\n}\n"),
            std::vector<std::string>{"loops"});
}

TEST_F(Cuda, ConvolutionsCallLibraries) {
  const std::string call =
      "convolution dtype=f16 result=f16 tf32=0 transpose_a=0 transpose_b=0 bias=1 residual=1 "
      "rectified=1 alpha=1 "
      "2 14 14 32 64 3 3 7 7 1 0 1 0 2 2 1 1 1";
  EXPECT_EQ(calls_of(R"(graph (x: f16[2, 14, 14, 32]@NHWC, z: f16[2, 7, 7, 64]@NHWC) {
  w = constant f16[64, 32, 3, 3] normal(seed = 1, mean = 0.0, deviation = 0.1)
  b = constant f16[64] normal(seed = 2, mean = 0.0, deviation = 0.1)
  y = fused(x, w, b, z) group = graph (x: f16[2, 14, 14, 32]@NHWC, w: f16[64, 32, 3, 3], b: f16[64], z: f16[2, 7, 7, 64]@NHWC) {
    c = conv(x, w, b) {strides = [2, 2], pads = [1, 1, 1, 1]}
    s = add(c, z)
    r = relu(s)
    return r
  }
  return y
}
)"),
            std::vector<std::string>{call});
}

// Extents that the run decides, and that may be 0, do not keep contractions from libraries.
TEST_F(Cuda, SymbolicContractionsCallLibraries) {
  EXPECT_EQ(
      calls_of("graph (a: f16[B, S, 64], b: f16[64, 48]) {\n  y = matmul(a, b)\n  return y\n}\n"),
      std::vector<std::string>{"product dtype=f16 result=f16 tf32=0 transpose_a=0 "
                               "transpose_b=0 bias=0 residual=0 rectified=0 "
                               "alpha=1 1 B*S 48 64 64 0 48 0 48 0 48 0"});
  EXPECT_EQ(calls_of(R"(graph (x: f16[N, H, W, 32]@NHWC) {
  w = constant f16[64, 32, 3, 3] normal(seed = 1, mean = 0.0, deviation = 0.1)
  y = conv(x, w) {strides = [2, 2], pads = [1, 1, 1, 1], out_layout = "NHWC"}
  return y
}
)"),
            std::vector<std::string>{"convolution dtype=f16 result=f16 tf32=0 transpose_a=0 "
                                     "transpose_b=0 bias=0 residual=0 rectified=0 alpha=1 "
                                     "N H W 32 64 3 3 floor((H - 1)/2) + 1 floor((W - 1)/2) + 1 "
                                     "1 1 1 1 2 2 1 1 1"});
}

// The search for the padding of a symbolic extent is bounded: these windows span 2^31 rows.
TEST_F(Cuda, HugeDilationsOfSymbolicExtentsStayLoops) {
  EXPECT_EQ(calls_of(R"(graph (x: f16[1, H, 8, 32]@NHWC) {
  w = constant f16[64, 32, 3, 3] normal(seed = 1, mean = 0.0, deviation = 0.1)
  y = conv(x, w) {dilations = [1073741824, 1], pads = [1073741824, 1, 1073741824, 1], out_layout = "NHWC"}
  return y
}
)"),
            std::vector<std::string>{"loops"});
}

// Windows that fit into the padding have results of an image without rows.
TEST_F(Cuda, ConvolutionsOfPaddingAloneStayLoops) {
  EXPECT_EQ(calls_of(R"(graph (x: f16[1, H, 8, 32]@NHWC) {
  w = constant f16[64, 32, 2, 2] normal(seed = 1, mean = 0.0, deviation = 0.1)
  y = conv(x, w) {pads = [1, 1, 1, 1], out_layout = "NHWC"}
  return y
}
)"),
            std::vector<std::string>{"loops"});
}

// One-dimensional images are images with one column, with channels first after copies.
TEST_F(Cuda, OneDimensionalConvolutionsCallLibraries) {
  const std::vector<std::string> calls = calls_of(R"(graph (x: f16[2, 80, L]) {
  w = constant f16[64, 80, 3] normal(seed = 1, mean = 0.0, deviation = 0.1)
  y = conv(x, w) {strides = [2], pads = [1, 1], dilations = [2]}
  return y
}
)");
  EXPECT_EQ(calls, (std::vector<std::string>{
                       "loops",
                       "convolution dtype=f16 result=f16 tf32=0 transpose_a=0 transpose_b=0 bias=0 "
                       "residual=0 rectified=0 alpha=1 "
                       "2 L 1 80 64 3 1 floor((L - 1)/2) 1 1 1 0 0 2 1 2 1 1",
                       "loops"}));
}

// Library calls on the emulated device, with the extents of one run; an empty sum gives zeros.
TEST_F(Cuda, SymbolicLibraryCallsMatchTheReference) {
  const std::vector<std::string> graphs = {
      R"(graph (x: f32[N, 32, H, W], v: f32[2, 24, L], a: f32[3, M, K], b: f32[3, K, 16]) {
  w = constant f32[16, 32, 3, 3] normal(seed = 1, mean = 0.0, deviation = 0.1)
  u = constant f32[32, 24, 4] normal(seed = 2, mean = 0.0, deviation = 0.1)
  y = conv(x, w) {strides = [2, 1], pads = [1, 1, 0, 1]}
  z = conv(v, u) {strides = [3], pads = [2, 1]}
  p = matmul(a, b)
  return y, z, p
}
)"};
  for (const std::string& text : graphs) {
    const Graph graph = parse_graph(text, all_ops());
    codegen::CompileOptions options = driver::cpu_options();
    codegen::cuda::CudaTarget device = testing::emulated_target();
    device.uses_libraries = true;
    device.uses_tensor_cores = false;
    options.target = codegen::cuda::cuda_target(device);
    const Program program = codegen::compile(graph, options).program;
    const auto calls = std::ranges::count_if(program.steps, [&](const Program::Step& step) {
      return !program.kernels[step.kernel].library.empty();
    });
    EXPECT_EQ(calls, 3);
    std::map<std::string, Shape> shapes = {
        {"x", {2, 32, 9, 7}}, {"v", {2, 24, 31}}, {"a", {3, 5, 40}}, {"b", {3, 40, 16}}};
    testing::expect_as_reference(program, graph, models::random_inputs(graph, 1, shapes), text);
    shapes["a"].back() = shapes["b"][1] = 0;
    testing::expect_as_reference(program, graph, models::random_inputs(graph, 2, shapes), text);
  }
}

// In full f32 few libraries' kernels add a residual: generated loops do.
TEST_F(Cuda, ExactConvolutionsAddResidualsInLoops) {
  EXPECT_EQ(calls_of(R"(graph (x: f32[1, 56, 56, 64]@NHWC, z: f32[1, 56, 56, 64]@NHWC) {
  w = constant f32[64, 64, 3, 3] normal(seed = 1, mean = 0.0, deviation = 0.1)
  b = constant f32[64] normal(seed = 2, mean = 0.0, deviation = 0.1)
  y = fused(x, w, b, z) group = graph (x: f32[1, 56, 56, 64]@NHWC, w: f32[64, 64, 3, 3], b: f32[64], z: f32[1, 56, 56, 64]@NHWC) {
    c = conv(x, w, b) {pads = [1, 1, 1, 1]}
    s = add(c, z)
    r = relu(s)
    return r
  }
  return y
}
)"),
            (std::vector<std::string>{"convolution dtype=f32 result=f32 tf32=0 transpose_a=0 "
                                      "transpose_b=0 bias=0 residual=0 rectified=0 alpha=1 "
                                      "1 56 56 64 64 3 3 56 56 1 1 1 1 1 1 1 1 1",
                                      "loops"}));
}

TEST_F(Cuda, LibraryTasksVerify) {
  const Graph graph = parse_graph(
      "graph (a: f16[32, 64], b: f16[64, 48]) {\n  m = matmul(a, b)\n  y = softmax(m) {axis = 1}\n "
      " return y\n}\n",
      all_ops());
  codegen::CompileOptions options = driver::cpu_options("x86-64-v3");
  options.target = codegen::cuda::cuda_target({"sm_90a"});
  const TaskList list = codegen::select(graph, options).tasks;
  EXPECT_NO_THROW(verify(list));
  EXPECT_EQ(list.tasks.front().reads.size(), 2u);
  EXPECT_EQ(list.tasks.front().writes.size(), 1u);
}

// A result may overwrite an operand that its kernel reads only at the written elements.
TEST_F(Cuda, ResultsInPlaceOfDeadOperands) {
  const Graph graph = parse_graph(
      "graph (a: f16[32, 64], b: f16[64, 48]) {\n  m = matmul(a, b)\n  g = gelu(m)\n  y = "
      "softmax(g) {axis = 1}\n  return y\n}\n",
      all_ops());
  codegen::CompileOptions options = driver::cpu_options("x86-64-v3");
  options.target = codegen::cuda::cuda_target({"sm_90a"});
  const TaskList list = codegen::select(graph, options).tasks;
  EXPECT_NO_THROW(verify(list));
  ASSERT_EQ(list.tasks.size(), 3u);
  const std::uint32_t product = list.tasks[0].writes.front(), gelu = list.tasks[1].writes.front();
  EXPECT_TRUE(list.tasks[0].may_share.empty());
  ASSERT_EQ(list.tasks[1].may_share.size(), 1u);
  EXPECT_EQ(list.tasks[1].may_share.front(), (std::pair{gelu, product}));
  EXPECT_TRUE(list.tasks[2].may_share.empty()) << "a row is read before it is written";
}

// Few iterations next to each other: each loop gets a kernel with all positions.
TEST_F(Cuda, IndependentLoopsAreSeparateKernels) {
  const std::string text = R"(graph (w: f32[16, 8, 3, 3]) {
  y0, y1 = fused(w) group = graph (w: f32[16, 8, 3, 3]) {
    b = cast(w) {to = bf16}
    t = transpose(b) {perm = [2, 3, 1, 0]}
    u = transpose(b) {perm = [2, 3, 0, 1]}
    return t, u
  }
  return y0, y1
}
)";
  codegen::CompileOptions options = driver::cpu_options("x86-64-v3");
  options.target = codegen::cuda::cuda_target({"sm_90a"});
  const TaskList list = codegen::select(parse_graph(text, all_ops()), options).tasks;
  EXPECT_NO_THROW(verify(list));
  EXPECT_EQ(list.tasks.size(), 2u);
  expect_as_reference(text);
}

// Rows of three channels are stored as vectors of four.
TEST_F(Cuda, FusesOddLoops) {
  const std::string text =
      "graph (x: f32[2, 3, 5, 8]) {\n  y = transpose(x) {perm = [0, 2, 3, 1]}\n  return y\n}\n";
  const Graph graph = parse_graph(text, all_ops());
  codegen::CompileOptions options = driver::cpu_options("x86-64-v3");
  options.target = codegen::cuda::cuda_target({"sm_90a"});
  const TaskList list = codegen::select(graph, options).tasks;
  ASSERT_EQ(list.kernels.size(), 1u);
  const codegen::cuda::GridBinding binding =
      codegen::cuda::bind(list.kernels.front().nest, {"sm_90a"});
  ASSERT_FALSE(binding.items.empty());
  EXPECT_EQ(binding.items.back()->extent, Dim(24));
  expect_as_reference(text);
}

TEST_F(Cuda, GeluIsAccurateFarBelowZero) {
  const Graph graph =
      parse_graph("graph (x: f32[401]) {\n  y = gelu(x)\n  return y\n}\n", all_ops());
  Tensor x(DType::F32, {401});
  for (std::int64_t k = 0; k < 401; ++k) x.set_real(k, -10.0 + 0.05 * static_cast<double>(k));
  const std::vector<Tensor> y = run_emulated(graph, {x});
  for (std::int64_t k = 0; k < 401; ++k) {
    const double at = x.real_at(k), right = 0.5 * at * std::erfc(-at / std::sqrt(2.0));
    EXPECT_NEAR(y[0].real_at(k), right, 1e-7 + 3e-6 * std::abs(right)) << at;
  }
}

// Device code multiplies by the reciprocal: quotients next to every half and beyond the range of
// bytes, with divisors of all-ones, single-bit and random mantissas.
TEST_F(Cuda, QuantizationMatchesTheReference) {
  const std::vector<std::string> scales = {
      "0.0505006574", "0.0830369517",   "0.25",  "1",     "1.99999988",     "1.00000012",  "0.7",
      "3e5",          "1.90734852e-06", "1e-15", "1e-30", "5.76460821e+17", "0.0301161464"};
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> numbers = {0.0F,   -0.0F,   kInfinity, -kInfinity, NAN,
                                1e-40F, -1e-40F, 3e38F,     -3e38F};
  std::mt19937 random(7);
  for (const std::string& written : scales) {
    const float scale = std::stof(written);
    for (int k = -390; k <= 390; ++k) {
      const float half = (static_cast<float>(k) + 0.5F) * scale;
      float at = half;
      for (int n = 0; n < 3; ++n) at = std::nextafter(at, -kInfinity);
      for (int n = 0; n < 7; ++n, at = std::nextafter(at, kInfinity)) numbers.push_back(at);
      numbers.push_back(half + std::ldexp(static_cast<float>(random() % 1000), -11) * scale);
    }
  }
  const auto count = static_cast<std::int64_t>(numbers.size());
  std::string text = concat("graph (x: f32[", count, "]) {\n  r = relu(x)\n"), results;
  for (std::size_t k = 0; k < scales.size(); ++k) {
    text += concat("  s", k, " = constant f32[] ", scales[k], "\n");
    for (const auto& [of, type, zero] : {std::tuple("x", "u8", 0), std::tuple("x", "u8", 119),
                                         std::tuple("x", "i8", -7), std::tuple("r", "u8", 3)}) {
      const std::string name = concat(k, of, type, "_", zero < 0 ? -zero : zero);
      text += concat("  z", name, " = constant ", type, "[] ", zero, "\n  y", name,
                     " = quantize_linear(", of, ", s", k, ", z", name, ")\n");
      results += concat(results.empty() ? "y" : ", y", name);
    }
  }
  const Graph graph = parse_graph(concat(text, "  return ", results, "\n}\n"), all_ops());
  Tensor x(DType::F32, {count});
  for (std::int64_t k = 0; k < count; ++k)
    x.set_real(k, static_cast<double>(numbers[static_cast<std::size_t>(k)]));
  const std::vector<Tensor> made = run_emulated(graph, {x});
  const std::vector<Datum> right = reference::evaluate(graph, {x});
  ASSERT_EQ(made.size(), right.size());
  for (std::size_t n = 0; n < made.size(); ++n) {
    for (std::int64_t k = 0; k < count; ++k)
      ASSERT_EQ(made[n].integer_at(k), right[n].tensor().integer_at(k))
          << n << ": " << x.real_at(k);
  }
}

TEST_F(Cuda, LibraryCallsRoundTrip) {
  LibraryCall call;
  call.kind = LibraryCall::Kind::Convolution;
  call.dtype = "bf16";
  call.has_bias = true;
  call.alpha = 0.1;
  EXPECT_EQ(parse_library_call(to_string(call)), call);
  EXPECT_THROW(parse_library_call("product dtype=f32"), Error);
  EXPECT_THROW(parse_library_call("convolve dtype=f32 result=f32 tf32=0 transpose_a=0 "
                                  "transpose_b=0 bias=0 residual=0 rectified=0 alpha=1"),
               Error);
}

}  // namespace
}  // namespace tenon::cuda_test
