// Attention by wgmma with TMA (FlashAttention-3), emulated as in `cuda_test.cpp`.
#include "codegen/compile.h"
#include "codegen/cuda/select.h"
#include "codegen/select.h"
#include "cuda_emulation.h"
#include "driver/compile.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "tasks/task_list.h"
#include "testing/verify/trial_inputs.h"

#include <gtest/gtest.h>

namespace tenon::cuda_test {
namespace {

class CudaAttention : public testing::EmulatedDeviceTest {};

// Compares attention with the reference and expects one kernel that reads keys and values by TMA,
// in clusters of `cluster` blocks; 0: persistent.
void expect_kernel(const std::string& text, unsigned cluster) {
  const Graph graph = parse_graph(text, all_ops());
  codegen::CompileOptions options = driver::cpu_options();
  options.target = codegen::cuda::cuda_target(testing::emulated_target());
  const TaskList list = codegen::select(graph, options).tasks;
  EXPECT_EQ(list.tasks.back().alternatives.front().candidate, "attention") << text;
  EXPECT_EQ(list.kernels.back().maps.size(), 2U) << text;
  EXPECT_EQ(list.kernels.back().cluster, cluster) << text;
  testing::expect_as_reference(
      graph,
      testing::trial_inputs(graph, {testing::TrialKind::Ordinary, testing::TrialKind::Ordinary, 1}),
      text);
}
void expect_wgmma(const std::string& text) { expect_kernel(text, 0); }

// Neither queries nor keys fill tiles: rows after the last key belong to the next head.
TEST_F(CudaAttention, MasksTails) {
  expect_wgmma(R"(graph (q: f16[2, 3, 70, 64], k: f16[2, 3, 150, 64], v: f16[2, 3, 150, 64]) {
  y = attention(q, k, v)
  return y
}
)");
  expect_wgmma(
      R"(graph (q: bf16[1, 2, 200, 128], k: bf16[1, 2, 300, 128], v: bf16[1, 2, 300, 128]) {
  y = attention(q, k, v) {scale = 0.3}
  return y
}
)");
  expect_wgmma(R"(graph (q: f16[1, 1, 130, 256], k: f16[1, 1, 170, 256], v: f16[1, 1, 170, 256]) {
  y = attention(q, k, v) {masked_rows = nan}
  return y
}
)");
}

// 176 keys per block; several tiles per thread block.
TEST_F(CudaAttention, ReadsLongSequences) {
  expect_wgmma(R"(graph (q: f16[1, 2, 150, 128], k: f16[1, 2, 2100, 128], v: f16[1, 2, 2100, 128]) {
  y = attention(q, k, v)
  return y
}
)");
}

// Causal tiles pair up, long with short; some queries see no key.
TEST_F(CudaAttention, EndsAtCausalMasks) {
  expect_wgmma(R"(graph (q: bf16[1, 4, 400, 64], k: bf16[1, 2, 400, 64], v: bf16[1, 2, 400, 64]) {
  y = attention(q, k, v) {causal = true}
  return y
}
)");
  expect_wgmma(R"(graph (q: f16[1, 2, 150, 128], k: f16[1, 2, 290, 128], v: f16[1, 2, 290, 128]) {
  y = attention(q, k, v) {causal = true, causal_offset = 140}
  return y
}
)");
  expect_wgmma(R"(graph (q: f16[2, 1, 150, 64], k: f16[2, 1, 90, 64], v: f16[2, 1, 90, 64]) {
  y = attention(q, k, v) {causal = true, causal_offset = -60}
  return y
}
)");
}

// Scores that are more than a scaled product: masks as operands, soft caps, windows.
TEST_F(CudaAttention, ComputesScoresOfAnyForm) {
  expect_wgmma(
      R"(graph (q: f16[2, 2, 70, 64], k: f16[2, 2, 140, 64], v: f16[2, 2, 140, 64], m: f32[2, 1, 1, 140]) {
  y = attention(q, k, v, m) {softcap = 3}
  return y
}
)");
  expect_wgmma(
      R"(graph (q: f16[1, 2, 200, 128], k: f16[1, 2, 200, 128], v: f16[1, 2, 200, 128], m: bool[200, 200]) {
  y = attention(q, k, v, m) {causal = true, left_window = 90}
  return y
}
)");
}

// Without keys every sum is empty.
TEST_F(CudaAttention, ReturnsZerosWithoutKeys) {
  const std::string text =
      R"(graph (q: f16[1, 2, 70, 64], k: f16[1, 2, T, 64], v: f16[1, 2, T, 64]) {
  y = attention(q, k, v) {masked_rows = nan}
  return y
}
)";
  const Graph graph = parse_graph(text, all_ops());
  const Tensor queries(DType::F16, {1, 2, 70, 64}), keys(DType::F16, {1, 2, 0, 64});
  const Tensor y = testing::run_emulated(graph, {queries, keys, keys}).front();
  for (std::int64_t k = 0; k < y.size(); ++k) ASSERT_EQ(y.real_at(k), 0);
}

// Heads side by side in rows of one tensor, and lengths that only the run knows.
TEST_F(CudaAttention, ReadsFusedHeadsOfSymbolicLengths) {
  expect_wgmma(R"(graph (x: f16[B, S, 3, 2, 64]) {
  t = transpose(x) {perm = [2, 0, 3, 1, 4]}
  a = slice(t) {starts = [0], ends = [1], axes = [0]}
  b = slice(t) {starts = [1], ends = [2], axes = [0]}
  c = slice(t) {starts = [2], ends = [3], axes = [0]}
  q = squeeze(a) {axes = [0]}
  k = squeeze(b) {axes = [0]}
  v = squeeze(c) {axes = [0]}
  y = attention(q, k, v) {causal = true}
  return y
}
)");
}

// One query per head, with and without grouped heads: the blocks of a cluster share the keys.
TEST_F(CudaAttention, SplitsKeysOfOneQuery) {
  expect_kernel(R"(graph (q: f16[2, 3, 1, 64], k: f16[2, 3, 550, 64], v: f16[2, 3, 550, 64]) {
  y = attention(q, k, v)
  return y
}
)",
                4);
  expect_kernel(
      R"(graph (q: bf16[1, 8, 1, 128], k: bf16[1, 2, 1100, 128], v: bf16[1, 2, 1100, 128]) {
  y = attention(q, k, v) {softcap = 4}
  return y
}
)",
      8);
  expect_kernel(
      R"(graph (q: f16[1, 12, 1, 256], k: f16[1, 1, 100, 256], v: f16[1, 1, 100, 256], m: f32[1, 1, 1, 100]) {
  y = attention(q, k, v, m)
  return y
}
)",
      1);
}

// Several positions with a causal mask over past keys, whose number only the run knows.
TEST_F(CudaAttention, SplitsSymbolicKeys) {
  expect_kernel(
      R"(graph (q: f16[B, 2, 5, 64], k: f16[B, 2, T, 64], v: f16[B, 2, T, 64], m: bool[B, 1, 5, T]) {
  y = attention(q, k, v, m)
  return y
}
)",
      8);
}

}  // namespace
}  // namespace tenon::cuda_test
