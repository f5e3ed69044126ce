#include "base/error.h"
#include "base/text.h"
#include "driver/compile.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "nests/tile_and_fuse.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace tenon::tile_and_fuse_test {
namespace {

// Compiles without passes; expects the number of steps, bit-identical results on any number of
// threads, and agreement with the reference.
void expect_steps(const std::string& text, std::size_t steps,
                  const std::map<std::string, Shape>& shapes = {}) {
  const Graph graph = parse_graph(text, all_ops());
  const std::vector<Datum> inputs = models::random_inputs(graph, 5, shapes);
  const Tensor expected = reference::evaluate(graph, inputs).front().tensor();
  Tensor first;
  const Program program = codegen::compile(graph, driver::cpu_options()).program;
  for (const int threads : {1, 2, 3, 7}) {
    CompiledModel model(program, threads);
    EXPECT_EQ(model.program().steps.size(), steps) << text;
    const Tensor actual = model.run(inputs).front().tensor();
    ASSERT_EQ(actual.shape(), expected.shape());
    for (std::int64_t k = 0; k < actual.size(); ++k) {
      ASSERT_NEAR(actual.real_at(k), expected.real_at(k), 1e-4) << text;
    }
    if (threads == 1) first = actual;
    EXPECT_TRUE(identical(actual, first)) << text;
  }
}

std::string constant(const std::string& name, const std::string& type, int seed) {
  const std::string plain = type.substr(0, type.find('@'));
  return concat("  ", name, ": ", type, " = constant ", plain, " normal(seed = ", seed,
                ", mean = 0.0, deviation = 0.2)\n");
}

struct Image {
  int batch, height, width, channels, stride, columns;
};

std::string depthwise_and_product(const Image& i) {
  const std::string x =
      concat("f32[", i.batch, ", ", i.height, ", ", i.width, ", ", i.channels, "]@NHWC");
  const std::string w = concat("f32[3, 3, 1, ", i.channels, "]@HWIO");
  const std::string v = concat("f32[1, 1, ", i.channels, ", ", i.columns, "]@HWIO");
  const std::string b = concat("f32[", i.channels, "]");
  return concat(
      "graph (x: ", x, ") {\n", constant("w", w, 1), constant("v", v, 2), constant("b", b, 3),
      "  y = fused(x, w, v, b)\n    group = graph (p: ", x, ", q: ", w, ", r: ", v, ", s: ", b,
      ") {\n", "      t = conv(p, q, s) {groups = ", i.channels,
      ", pads = [1, 1, 1, 1], strides = [", i.stride, ", ", i.stride,
      "]}\n      u = relu(t)\n      z = conv(u, r)\n      return z\n    }\n  return y\n}\n");
}

TEST(TileAndFuse, DepthwiseAndPointwise) {
  for (const Image& image :
       {Image{1, 12, 10, 20, 1, 24}, Image{2, 14, 9, 16, 2, 5}, Image{1, 13, 7, 33, 1, 17},
        Image{3, 8, 8, 8, 1, 3}, Image{1, 16, 5, 4, 2, 40}}) {
    expect_steps(depthwise_and_product(image), 1);
  }
}

// A padded copy that exceeds the caches is computed in parts, before the channel windows that read
// it. Smaller images are padded at once; copies with expensive elements are separate steps.
TEST(TileAndFuse, LargePaddedCopy) {
  const auto steps = [](int batch, int size, int channels, int groups, int stride) {
    const std::string x = concat("f32[", batch, ", ", size, ", ", size, ", ", channels, "]@NHWC");
    const std::string w = concat("f32[3, 3, ", channels / groups, ", ", channels, "]@HWIO");
    const Graph graph = parse_graph(
        concat("graph (x: ", x, ") {\n", constant("w", w, 1), "  y = conv(x, w) {groups = ", groups,
               ", pads = [1, 1, 1, 1], strides = [", stride, ", ", stride, "]}\n  return y\n}\n"),
        all_ops());
    codegen::CompileOptions options =
        driver::cpu_options("haswell");  // with 8 MiB of cache on every machine
    options.allow_winograd = false;
    const Program program = codegen::compile(graph, options).program;
    const std::vector<Datum> inputs = models::random_inputs(graph, 5, {});
    const Tensor expected = reference::evaluate(graph, inputs).front().tensor();
    for (const int threads : {1, 3}) {
      CompiledModel model(program, threads);
      const Tensor actual = model.run(inputs).front().tensor();
      double difference = 0;
      for (std::int64_t k = 0; k < actual.size(); ++k)
        difference = std::max(difference, std::abs(actual.real_at(k) - expected.real_at(k)));
      EXPECT_LT(difference, 1e-4);
    }
    return program.steps.size();
  };
  EXPECT_EQ(steps(12, 48, 32, 32, 1), 1u);
  EXPECT_EQ(steps(12, 48, 32, 32, 2), 1u);
  EXPECT_EQ(steps(1, 48, 32, 32, 1), 1u);
  EXPECT_EQ(steps(8, 64, 16, 1, 1), 2u);
}

std::string convolution_and_response(int height, int width, int channels, int stride) {
  const std::string x = concat("f32[2, ", height, ", ", width, ", 3]@NHWC");
  const std::string w = concat("f32[5, 5, 3, ", channels, "]@HWIO");
  const std::string b = concat("f32[", channels, "]");
  return concat("graph (x: ", x, ") {\n", constant("w", w, 1), constant("b", b, 2),
                "  y = fused(x, w, b)\n    group = graph (p: ", x, ", q: ", w, ", r: ", b, ") {\n",
                "      t = conv(p, q, r) {strides = [", stride, ", ", stride,
                "], pads = [2, 2, 2, 2]}\n",
                "      u = relu(t)\n      z = lrn(u) {size = 5, alpha = 5e-04, bias = 2.0}\n",
                "      return z\n    }\n  return y\n}\n");
}

TEST(TileAndFuse, ConvolutionAndChannelResponse) {
  expect_steps(convolution_and_response(16, 12, 24, 1), 1);
  expect_steps(convolution_and_response(17, 11, 7, 2), 1);
  expect_steps(convolution_and_response(9, 20, 16, 3), 1);
}

std::string two_products(const std::string& rows, int inner, int columns) {
  const std::string x = concat("f32[", rows, ", 40]"), w = concat("f32[40, ", inner, "]");
  const std::string v = concat("f32[", inner, ", ", columns, "]");
  return concat("graph (x: ", x, ") {\n", constant("w", w, 1), constant("v", v, 2),
                "  y = fused(x, w, v)\n    group = graph (p: ", x, ", q: ", w, ", r: ", v, ") {\n",
                "      t = matmul(p, q)\n      u = relu(t)\n      z = matmul(u, r)\n",
                "      return z\n    }\n  return y\n}\n");
}

TEST(TileAndFuse, GemmsOverTheSameRows) {
  expect_steps(two_products("24", 33, 18), 1);
  expect_steps(two_products("13", 16, 16), 1);
}

// Recomputation is cheap: the columns of the second product are tiled.
TEST(TileAndFuse, ColumnBlocks) {
  const std::string text =
      concat("graph (x: f32[1, 6, 5, 24]@NHWC) {\n", constant("w", "f32[24, 200]", 1),
             R"(  y = fused(x, w)
    group = graph (p: f32[1, 6, 5, 24]@NHWC, q: f32[24, 200]) {
      t = reduce_mean(p) {axes = [1, 2], keep_axes = false}
      z = matmul(t, q)
      return z
    }
  return y
}
)");
  expect_steps(text, 1);
}

TEST(TileAndFuse, SymbolicRows) {
  const std::string text = two_products("n", 24, 20);
  // For one row, threads share the columns, each product by itself.
  for (const std::int64_t rows : {0, 1, 2, 7, 31}) expect_steps(text, 2, {{"x", {rows, 40}}});
  const std::string several =
      concat("graph <n in [8, 64]> ", text.substr(std::string("graph ").size()));
  for (const std::int64_t rows : {8, 31, 32, 33, 64}) expect_steps(several, 1, {{"x", {rows, 40}}});
}

TEST(TileAndFuse, SymbolicBatch) {
  std::string text = depthwise_and_product({999, 12, 10, 20, 1, 24});
  for (std::size_t at = text.find("999"); at != std::string::npos; at = text.find("999"))
    text.replace(at, 3, "n");
  for (const std::int64_t images : {0, 1, 3}) expect_steps(text, 1, {{"x", {images, 12, 10, 20}}});
}

TEST(TileAndFuse, EmptyOperands) { expect_steps(two_products("0", 24, 20), 0); }

// Fusion in the graph and in nests uses the same costs: a fused group is one step.
TEST(TileAndFuse, FusedGroupIsOneStep) {
  const std::string texts[] = {
      concat("graph (x: f32[1, 7, 7, 512]@NHWC) {\n", constant("w", "f32[512, 1000]", 1), R"(
  t = reduce_mean(x) {axes = [1, 2], keep_axes = false}
  y = matmul(t, w)
  return y
}
)"),
      concat("graph (x: f32[1, 28, 28, 192]@NHWC) {\n", constant("w", "f32[3, 3, 1, 192]@HWIO", 1),
             constant("v", "f32[1, 1, 192, 32]@HWIO", 2), R"(
  t = conv(x, w) {groups = 192, pads = [1, 1, 1, 1]}
  u = relu(t)
  y = conv(u, v)
  return y
}
)"),
      concat("graph (x: f32[1, 64, 64, 3]@NHWC) {\n", constant("w", "f32[7, 7, 3, 64]@HWIO", 1), R"(
  t = conv(x, w) {strides = [2, 2], pads = [3, 3, 3, 3]}
  u = relu(t)
  y = lrn(u) {size = 5, alpha = 5e-04, bias = 2.0}
  return y
}
)"),
  };
  for (const std::string& text : texts) {
    EXPECT_EQ(driver::compile_graph(parse_graph(text, all_ops())).steps.size(), 1u) << text;
  }
}

std::string attention(const std::string& symbols, int key_heads, const std::string& queries,
                      const std::string& keys, const std::string& attributes = "") {
  return concat("graph ", symbols, "(q: f32[1, 4, ", queries, ", 16], k: f32[1, ", key_heads, ", ",
                keys, ", 16], v: f32[1, ", key_heads, ", ", keys,
                ", 24]) {\n  y = attention(q, k, v)", attributes, "\n  return y\n}\n");
}

// FlashAttention: blocks of queries of one head with their scores in scratch; the keys are
// transposed in the same step for one block of queries, else before.
TEST(TileAndFuse, AttentionWithoutScoreMatrix) {
  for (const int key_heads : {4, 2}) {
    for (const int queries : {64, 331}) {
      const std::string count = std::to_string(queries);
      const std::string text = attention("", key_heads, count, count, " {causal = true}");
      const Program program =
          codegen::compile(parse_graph(text, all_ops()), driver::cpu_options()).program;
      EXPECT_LT(program.arena_bytes, 4U * 4U * 331U * 64U) << text;
      expect_steps(text, program.steps.size());
      EXPECT_LE(program.steps.size(), 2U) << text;
    }
  }
}

// The last block has fewer queries, for any number of them.
TEST(TileAndFuse, AttentionWithSymbolicLengths) {
  const Graph graph = parse_graph(attention("<Q, K> ", 4, "Q", "K"), all_ops());
  const Program program = codegen::compile(graph, driver::cpu_options()).program;
  EXPECT_EQ(program.steps.size(), 1U);
  CompiledModel one(program, 1), three(program, 3);
  for (const int queries : {1, 31, 32, 33, 70}) {
    for (const int keys : {1, 5, 33, 64}) {
      const std::vector<Datum> inputs = models::random_inputs(
          graph, 5, {{"q", {1, 4, queries, 16}}, {"k", {1, 4, keys, 16}}, {"v", {1, 4, keys, 24}}});
      const Tensor expected = reference::evaluate(graph, inputs).front().tensor();
      const Tensor actual = one.run(inputs).front().tensor();
      ASSERT_EQ(actual.shape(), expected.shape());
      for (std::int64_t k = 0; k < actual.size(); ++k) {
        ASSERT_NEAR(actual.real_at(k), expected.real_at(k), 1e-4)
            << queries << " queries, " << keys << " keys";
      }
      EXPECT_TRUE(identical(three.run(inputs).front().tensor(), actual));
    }
  }
}

}  // namespace
}  // namespace tenon::tile_and_fuse_test
