// Bf16 dot products (VDPBF16PS, TDPBF16PS) on processors that have the instructions.
#include "base/error.h"
#include "codegen/compile.h"
#include "driver/compile.h"
#include "driver/explain.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "ops/definition/registry.h"
#include "program/target.h"
#include "reference/evaluate.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tenon::bf16_dot_test {
namespace {

std::string product(const std::string& dtype, int rows, int sum, int columns) {
  return concat("graph (x: ", dtype, "[", rows, ", ", sum, "]) {\n  w: ", dtype, "[", sum, ", ",
                columns, "] = constant ", dtype, "[", sum, ", ", columns,
                "] normal(seed = 1, mean = 0.0, deviation = 0.1)\n  t = matmul(x, w)\n  y = "
                "relu(t)\n  return y\n}\n");
}

// Returns the kernel choice of the product, among kernels that widen its rows or compute its
// epilogue.
std::string chosen(const std::string& text, const std::string& cpu) {
  for (const codegen::Decision& decision :
       codegen::decide(parse_graph(text, all_ops()), driver::cpu_options(cpu))) {
    const std::string& name = decision.candidates[decision.selection.versions.at(0).candidate].name;
    if (!name.starts_with("loops")) return name;
  }
  return "loops";
}

TEST(Bf16DotProducts, SelectedByProcessorFeatures) {
  EXPECT_EQ(chosen(product("bf16", 128, 768, 96), "zen4"), "pairs 8x32");
  EXPECT_EQ(chosen(product("bf16", 128, 768, 96), "sapphire-rapids"), "pairs 8x32");
  EXPECT_EQ(chosen(product("f32", 128, 768, 96), "zen4"), "tiles 8x32");
  EXPECT_EQ(chosen(product("bf16", 128, 767, 96), "zen4"), "tiles 8x32");
  EXPECT_EQ(chosen(product("bf16", 128, 768, 90), "zen4"), "tiles 8x32");
  EXPECT_EQ(chosen(product("bf16", 128, 768, 96), "x86-64-v4"), "tiles 8x32");
}

// A program states its instruction sets; only programs with bf16 dot products require more than
// their level.
TEST(Bf16DotProducts, ProgramsStateRequiredInstructions) {
  const Program paired = codegen::compile(parse_graph(product("bf16", 128, 768, 96), all_ops()),
                                          driver::cpu_options("zen4"))
                             .program;
  EXPECT_EQ(paired.target, "x86-64-v4+avx512-bf16");
  EXPECT_EQ(codegen::compile(parse_graph(product("f32", 128, 768, 96), all_ops()),
                             driver::cpu_options("zen4"))
                .program.target,
            "x86-64-v4");
  std::vector<std::string_view> features{"AVX2",      "FMA",       "F16C",      "BMI",
                                         "BMI2",      "LZCNT",     "MOVBE",     "AVX-512F",
                                         "AVX-512BW", "AVX-512CD", "AVX-512DQ", "AVX-512VL"};
  EXPECT_NE(error_text([&] { require_target(paired, features); }).find("AVX-512-BF16"),
            std::string::npos);
  features.emplace_back("AVX-512-BF16");
  EXPECT_EQ(error_text([&] { require_target(paired, features); }), "no error");
}

// AMX tiles take 16 rows or the remainder; reductions that do not fill a tile use vectors.
TEST(Bf16DotProducts, AmxTiles) {
  const auto assembly = [](int rows, int sum) {
    return codegen::print_code(parse_graph(product("bf16", rows, sum, 96), all_ops()),
                               driver::cpu_options("sapphire-rapids"), codegen::CompileStage::Code);
  };
  const std::string whole = assembly(128, 768);
  for (const char* instruction :
       {"ldtilecfg", "tileloadd", "tdpbf16ps", "tilestored", "tilerelease"}) {
    EXPECT_NE(whole.find(instruction), std::string::npos) << instruction;
  }
  const auto count = [](const std::string& text, const std::string& word) {
    std::size_t found = 0;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(count(whole, "ldtilecfg\t"), 1U);
  const std::string uneven = assembly(197, 768);  // 29 rows and 28, of two tiles each
  EXPECT_EQ(count(uneven, "\ttdpbf16ps\t"), 8U);
  EXPECT_EQ(count(uneven, "ldtilecfg\t"), 5U);
  EXPECT_EQ(uneven.find("vdpbf16ps\t"), std::string::npos);
  // On processors with AMX the vector dot product is not faster than widening to f32.
  EXPECT_EQ(chosen(product("bf16", 128, 770, 96), "sapphire-rapids"), "tiles 8x32 by 268");
  EXPECT_EQ(assembly(128, 770).find("tdpbf16ps\t"), std::string::npos);
}

// A convolution with padding copies the image first.
TEST(Bf16DotProducts, ConvolutionsWithPadding) {
  const std::string text =
      "graph (x: bf16[1, 14, 14, 64]@NHWC) {\n  w: bf16[3, 3, 64, 32]@HWIO = constant bf16[3, 3, "
      "64, 32] normal(seed = 1, mean = 0.0, "
      "deviation = 0.1)\n  y = conv(x, w) {pads = [1, 1, 1, 1]}\n  return y\n}\n";
  EXPECT_EQ(chosen(text, "sapphire-rapids"), "pairs 8x32");
  const std::string code =
      codegen::print_code(parse_graph(text, all_ops()), driver::cpu_options("sapphire-rapids"),
                          codegen::CompileStage::Code);
  EXPECT_NE(code.find("\ttdpbf16ps\t"), std::string::npos);
}

bool has_bf16_dot() {
  const std::vector<std::string_view> features = processor_features();
  return std::ranges::find(features, "AVX-512-BF16") != features.end();
}

// Products of bf16 are exact in f32, and sums are rounded as f32 sums, two at a time. The same bits
// on any number of threads.
TEST(Bf16DotProducts, MatchesTheReference) {
  if (!has_bf16_dot()) GTEST_SKIP() << "this processor has no AVX-512-BF16";
  for (const std::string& text :
       {product("bf16", 128, 768, 96), product("bf16", 13, 64, 32), product("bf16", 48, 130, 128),
        product("bf16", 1024, 96, 64), product("bf16", 197, 96, 64), product("bf16", 21, 64, 32)}) {
    const Graph graph = parse_graph(text, all_ops());
    const std::vector<Datum> inputs = models::random_inputs(graph, 5, {});
    const Tensor expected = reference::evaluate(graph, inputs).front().tensor();
    Tensor first;
    const Program program = codegen::compile(graph, driver::cpu_options("native")).program;
    for (const int threads : {1, 2, 3, 7}) {
      const Tensor actual = CompiledModel(program, threads).run(inputs).front().tensor();
      if (threads == 1) first = actual;
      EXPECT_TRUE(identical(actual, first)) << text;
    }
    for (std::int64_t k = 0; k < first.size(); ++k) {
      // Allows one rounding to bf16 and the loss from cancellation of large numbers.
      ASSERT_NEAR(first.real_at(k), expected.real_at(k),
                  0.01 * std::abs(expected.real_at(k)) + 0.01)
          << text;
    }
  }
}

}  // namespace
}  // namespace tenon::bf16_dot_test
