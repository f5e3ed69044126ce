// K-blocking of matrix products: a panel of weights stays in L1 for all rows.
#include "base/error.h"
#include "codegen/cpu/row_blocks.h"
#include "driver/compile.h"
#include "driver/explain.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "ops/definition/registry.h"
#include "program/target.h"
#include "reference/evaluate.h"
#include "target/cpu_facts.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tenon::k_blocking_test {
namespace {

std::string product(int rows, int sum, int columns) {
  return concat("graph (x: f32[", rows, ", ", sum, "]) {\n  w: f32[", sum, ", ", columns,
                "] = constant f32[", sum, ", ", columns,
                "] normal(seed = 1, mean = 0.0, deviation = 0.1)\n  b: f32[", columns,
                "] = constant f32[", columns,
                "] normal(seed = 2, mean = 0.0, deviation = 1.0)\n  t = matmul(x, w)\n  u = add(t, "
                "b)\n  y = relu(u)\n  return y\n}\n");
}

// A 1x1 convolution: its GEMM's M is the number of pixels of the image.
std::string convolution(int size, int channels, int outputs) {
  return concat(
      "graph (x: f32[1, ", size, ", ", size, ", ", channels, "]@NHWC) {\n  w: f32[1, 1, ", channels,
      ", ", outputs, "]@HWIO = constant f32[1, 1, ", channels, ", ", outputs,
      "] normal(seed = 1, mean = 0.0, deviation = 0.1)\n  y = conv(x, w)\n  return y\n}\n");
}

// A convolution whose image lines are too short to fill register tiles.
std::string window(int size, int channels, int outputs, int kernel, int stride, int images = 1) {
  return concat("graph (x: f32[", images, ", ", size, ", ", size, ", ", channels,
                "]@NHWC) {\n  w: f32[", kernel, ", ", kernel, ", ", channels, ", ", outputs,
                "]@HWIO = constant f32[", kernel, ", ", kernel, ", ", channels, ", ", outputs,
                "] normal(seed = 1, mean = 0.0, deviation = 0.1)\n  y = conv(x, w) {strides = [",
                stride, ", ", stride, "]}\n  return y\n}\n");
}

std::string chosen(const std::string& text, const std::string& cpu) {
  const codegen::Decision decision =
      codegen::decide(parse_graph(text, all_ops()), driver::cpu_options(cpu)).front();
  return decision.candidates[decision.selection.versions.at(0).candidate].name;
}

std::string refusal(const std::string& text, const std::string& name) {
  const codegen::Decision decision =
      codegen::decide(parse_graph(text, all_ops()), driver::cpu_options("sapphire-rapids")).front();
  const auto found =
      std::ranges::find(decision.candidates, name, &codegen::Decision::Candidate::name);
  return found == decision.candidates.end() ? "no such candidate" : found->verdict.reason;
}

// K-blocking pays only if L2 holds little more than the operands of one tile, and for long
// reductions.
TEST(KBlocking, DecidedByTargetFacts) {
  EXPECT_EQ(chosen(product(128, 768, 96), "sapphire-rapids"), "tiles 8x32 by 268");
  EXPECT_EQ(chosen(product(128, 768, 96), "zen4"), "tiles 8x32");
  EXPECT_EQ(chosen(product(128, 768, 96), "x86-64-v3"), "tiles 6x16 by 325");
  EXPECT_EQ(chosen(product(128, 256, 96), "sapphire-rapids"), "tiles 8x32");
  EXPECT_EQ(chosen(convolution(14, 1024, 64), "sapphire-rapids"), "tiles 8x32 by 268");
  EXPECT_EQ(chosen(window(16, 512, 64, 3, 2), "sapphire-rapids"), "tiles 8x32 by 268");
  EXPECT_EQ(chosen(window(14, 512, 64, 1, 2), "sapphire-rapids"), "tiles 8x32 by 268");
  EXPECT_EQ(chosen(window(16, 512, 64, 3, 2), "zen4"), "tiles 8x32");
  EXPECT_EQ(refusal(window(6, 512, 64, 3, 2), "tiles 8x32 by 268"), "M is small or symbolic");
  EXPECT_EQ(refusal(product(128, 256, 96), "tiles 8x32 by 268"),
            "its sum of 256 is not longer than 268");
  EXPECT_EQ(refusal(product(128, 773, 96), "tiles 8x32 by 268"),
            "its sum of 773 has no parts of 67 to 268");
  EXPECT_EQ(refusal(product(8, 768, 96), "tiles 8x32 by 268"), "M is small or symbolic");
}

// Images that exceed L2 are processed in groups that fit, unless rereading the weights costs more.
TEST(KBlocking, GroupsOfImages) {
  const TargetFacts facts = cpu_facts("sapphire-rapids");
  constexpr double kMiB = 1 << 20;
  EXPECT_EQ(codegen::cpu::images_together(16, 0.4 * kMiB, 2 * kMiB, 32, facts), 2);
  EXPECT_EQ(codegen::cpu::images_together(16, 0.2 * kMiB, 2 * kMiB, 32, facts), 4);
  EXPECT_EQ(codegen::cpu::images_together(7, 0.4 * kMiB, 2 * kMiB, 32, facts), 1);
  EXPECT_EQ(codegen::cpu::images_together(16, 3 * kMiB, 2 * kMiB, 32, facts), 1);
  EXPECT_EQ(codegen::cpu::images_together(3, 0.4 * kMiB, 2 * kMiB, 32, facts), 0);
  EXPECT_EQ(codegen::cpu::images_together(16, 0.4 * kMiB, 9 * kMiB, 2, facts), 0);
}

// If L2 does not hold the rows, blocks of columns share a pass over the reduction. The number of
// blocks balances the load of 32 cores.
TEST(KBlocking, GroupsOfColumnBlocks) {
  const TargetFacts facts = cpu_facts("sapphire-rapids");
  constexpr double kMiB = 1 << 20;
  EXPECT_EQ(codegen::cpu::columns_together(128, 1, 2 * kMiB, facts), 4);
  EXPECT_EQ(codegen::cpu::columns_together(64, 1, 2 * kMiB, facts), 2);
  EXPECT_EQ(codegen::cpu::columns_together(64, 2, 2 * kMiB, facts), 4);
  EXPECT_EQ(codegen::cpu::columns_together(128, 1, 0.5 * kMiB, facts), 1);
  EXPECT_EQ(codegen::cpu::columns_together(24, 1, 2 * kMiB, facts), 1);
}

// Rows without an even divisor are distributed by register tiles if that leaves fewer of 32 cores
// idle; the rows of image lines are not.
TEST(KBlocking, UnevenRows) {
  const TargetFacts facts = cpu_facts("sapphire-rapids");
  constexpr double kKiB = 1 << 10;
  const auto rows = [&](std::int64_t count, std::int64_t tile_rows, std::int64_t items) {
    return codegen::cpu::blocks_of_rows(count, 32, tile_rows, 2 * kKiB, items, facts).rows;
  };
  EXPECT_EQ(rows(169, 8, 2), 32);
  EXPECT_EQ(rows(169, 8, 8), 48);
  EXPECT_EQ(rows(169, 8, 32), 169);
  EXPECT_EQ(rows(169, 0, 2), 169);
  EXPECT_EQ(rows(49, 8, 4), 32);
  EXPECT_EQ(rows(196, 8, 8), 49);
}

bool has_avx512() {
  const std::vector<std::string_view> features = processor_features();
  return std::ranges::find(features, "AVX-512VL") != features.end();
}

// Every element is accumulated in the order without blocking, on any number of threads.
TEST(KBlocking, IsBitIdentical) {
  if (!has_avx512()) GTEST_SKIP() << "this processor has no AVX-512";
  for (const std::string& text :
       {product(128, 768, 96), product(96, 640, 70), product(1024, 768, 64),
        convolution(14, 1024, 64), convolution(7, 512, 40), convolution(13, 512, 48),
        product(61, 640, 96), product(169, 640, 33), window(16, 512, 64, 3, 2),
        window(16, 100, 70, 3, 2), window(29, 96, 64, 5, 2), window(14, 512, 64, 1, 2),
        window(57, 320, 64, 1, 4), window(28, 512, 64, 1, 2, 8), window(29, 256, 64, 3, 2, 2)}) {
    const Graph graph = parse_graph(text, all_ops());
    const std::vector<Datum> inputs = models::random_inputs(graph, 5, {});
    const Tensor whole =
        CompiledModel(codegen::compile(graph, driver::cpu_options("zen4")).program, 1)
            .run(inputs)
            .front()
            .tensor();
    const Tensor expected = reference::evaluate(graph, inputs).front().tensor();
    const Program program = codegen::compile(graph, driver::cpu_options("sapphire-rapids")).program;
    for (const int threads : {1, 2, 3, 7}) {
      const Tensor parts = CompiledModel(program, threads).run(inputs).front().tensor();
      EXPECT_TRUE(identical(parts, whole)) << text;
    }
    for (std::int64_t k = 0; k < whole.size(); ++k)
      ASSERT_NEAR(whole.real_at(k), expected.real_at(k), 1e-3) << text;
  }
}

TEST(KBlocking, ColumnGroupsAreBitIdentical) {
  if (!has_avx512()) GTEST_SKIP() << "this processor has no AVX-512";
  const Graph graph = parse_graph(product(37, 7680, 2048), all_ops());
  const std::vector<Datum> inputs = models::random_inputs(graph, 5, {});
  const Tensor whole =
      CompiledModel(codegen::compile(graph, driver::cpu_options("zen4")).program, 2)
          .run(inputs)
          .front()
          .tensor();
  const Program program = codegen::compile(graph, driver::cpu_options("sapphire-rapids")).program;
  for (const int threads : {1, 2, 7}) {
    const Tensor parts = CompiledModel(program, threads).run(inputs).front().tensor();
    EXPECT_TRUE(identical(parts, whole));
  }
}

std::string nests_of(const std::string& text) {
  return codegen::print_code(parse_graph(text, all_ops()), driver::cpu_options("sapphire-rapids"),
                             codegen::CompileStage::Nests);
}

TEST(KBlocking, OneRowReadsTwoStreamsOfLargeWeights) {
  EXPECT_NE(nests_of(product(1, 1024, 2048)).find("for i1oi in 0..2 jam by 2"), std::string::npos);
  EXPECT_EQ(nests_of(product(1, 1024, 512)).find("jam"), std::string::npos);  // fits the cache
  // odd number of panels
  EXPECT_EQ(nests_of(product(1, 1024, 2016)).find("jam"), std::string::npos);
  EXPECT_EQ(nests_of(product(8, 1024, 2048)).find("jam by 2"), std::string::npos);
}

TEST(KBlocking, PrefetchesRowsBeyondTheCache) {
  // 8 rows of 320.
  EXPECT_NE(nests_of(product(4096, 320, 64)).find("x0: f32[4096, 320] fetched 2560 ahead"),
            std::string::npos);
  EXPECT_NE(nests_of(product(512, 320, 64)).find("x0: f32[512, 320],"), std::string::npos);
}

TEST(KBlocking, PrefetchIsBitIdentical) {
  if (!has_avx512()) GTEST_SKIP() << "this processor has no AVX-512";
  for (const std::string& text : {product(1, 1024, 2048), product(2053, 320, 40)}) {
    const Graph graph = parse_graph(text, all_ops());
    const std::vector<Datum> inputs = models::random_inputs(graph, 5, {});
    const Tensor plain =
        CompiledModel(codegen::compile(graph, driver::cpu_options("zen4")).program, 2)
            .run(inputs)
            .front()
            .tensor();
    const Program program = codegen::compile(graph, driver::cpu_options("sapphire-rapids")).program;
    for (const int threads : {1, 2, 7}) {
      CompiledModel model(program, threads);
      // Odd runs traverse in reverse.
      for (int run = 0; run < 3; ++run)
        EXPECT_TRUE(identical(model.run(inputs).front().tensor(), plain)) << text;
    }
  }
}

}  // namespace
}  // namespace tenon::k_blocking_test
