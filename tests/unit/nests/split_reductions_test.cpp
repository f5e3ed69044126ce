#include "base/error.h"
#include "driver/compile.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "nests/node_exprs.h"
#include "nests/split_reductions.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"

#include <gtest/gtest.h>

namespace tenon::split_reductions_test {
namespace {

std::string sum_of(const std::string& type, const std::string& op, const std::string& axes) {
  return concat("graph (x: ", type, ") {\n  y = ", op, "(x) {axes = ", axes,
                ", keep_axes = false}\n  return y\n}\n");
}

nests::NestSequence split(const std::string& text) {
  const Graph graph = parse_graph(text, all_ops());
  nests::NestSequence sequence =
      nests::build_nests("y", nests::node_exprs(graph, *graph.nodes_in_order().begin()));
  nests::split_reductions(sequence);
  return sequence;
}

// Channel sums of an image: split-K parts of 32 KiB of whole rows, then their sum.
TEST(SplitReductions, SplitsChannelSums) {
  const nests::NestSequence sequence =
      split(sum_of("f32[2, 32, 64, 64]", "reduce_sum", "[0, 1, 2]"));
  ASSERT_EQ(sequence.parts.size(), 2U);
  const nests::NestSequence::Buffer& pieces = sequence.buffers.back();
  EXPECT_EQ(pieces.dims, (Dims{2, 16, 64}));
  EXPECT_EQ(pieces.role, nests::NestSequence::BufferRole::Temporary);
}

// Contiguous row sums, small reductions and matrix products are not split.
TEST(SplitReductions, KeepsOtherReductions) {
  EXPECT_EQ(split(sum_of("f32[64, 4096]", "reduce_sum", "[1]")).parts.size(), 1U);
  EXPECT_EQ(split(sum_of("f32[64, 64]", "reduce_sum", "[0]")).parts.size(), 1U);
  EXPECT_EQ(
      split("graph (a: f32[64, 4096], b: f32[4096, 64]) {\n  y = matmul(a, b)\n  return y\n}\n")
          .parts.size(),
      1U);
}

void expect_same_as_reference(const std::string& text) {
  const Graph graph = parse_graph(text, all_ops());
  const std::vector<Datum> inputs = models::random_inputs(graph, 5, {});
  const std::vector<Datum> expected = reference::evaluate(graph, inputs);
  std::vector<Datum> first;
  const Program program = codegen::compile(graph, driver::cpu_options()).program;
  for (const int threads : {1, 2, 3}) {
    CompiledModel model(program, threads);
    const std::vector<Datum> actual = model.run(inputs);
    for (std::size_t output = 0; output < actual.size(); ++output) {
      const Tensor &a = actual[output].tensor(), &b = expected[output].tensor();
      for (std::int64_t k = 0; k < a.size(); ++k)
        ASSERT_NEAR(a.real_at(k), b.real_at(k), 1e-2) << text << k;
      if (threads > 1) {
        EXPECT_TRUE(identical(a, first[output].tensor())) << text;
      }
    }
    if (threads == 1) first = actual;
  }
}

TEST(SplitReductions, MatchesTheReference) {
  for (const char* op : {"reduce_sum", "reduce_max", "reduce_min", "reduce_mean"}) {
    expect_same_as_reference(sum_of("f32[3, 37, 29, 48]", op, "[0, 1, 2]"));
    expect_same_as_reference(sum_of("f32[100003]", op, "[0]"));
  }
}

// Two reductions over the same elements, and their readers.
TEST(SplitReductions, BatchNormIsBitIdenticalOnAnyThreads) {
  expect_same_as_reference(
      "graph (x: f32[3, 48, 40, 24]@NHWC, s: f32[24], b: f32[24], m: f32[24], v: f32[24]) {\n"
      "  y, rm, rv, mean, inverse = batch_norm_training(x, s, b, m, v) {axis = 3}\n"
      "  return y, rm, rv, mean, inverse\n}\n");
}

}  // namespace
}  // namespace tenon::split_reductions_test
