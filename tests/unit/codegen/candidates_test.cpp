#include "base/error.h"
#include "codegen/cpu/candidates.h"
#include "driver/compile.h"
#include "driver/explain.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tenon::candidates_test {
namespace {

using codegen::Decision;

std::string convolution(int channels, const std::string& attributes,
                        const std::string& batch = "1") {
  return concat("graph (x: f32[", batch, ", 20, 20, ", channels, "]@NHWC) {\n  w: f32[3, 3, ",
                channels, ", 40]@HWIO = ", "constant f32[3, 3, ", channels,
                ", 40] normal(seed = 1, mean = 0.0, deviation = 0.1)\n", "  y = conv(x, w) {",
                attributes, "}\n  return y\n}\n");
}

// Compiles for x86-64-v3, the baseline of every machine that runs Tenon.
Decision decision_for(const std::string& text,
                      codegen::CompileOptions options = driver::cpu_options()) {
  options.target = driver::cpu_options("x86-64-v3").target;
  return codegen::decide(parse_graph(text, all_ops()), options).front();
}

const Verdict& verdict_of(const Decision& decision, const std::string& name) {
  const auto found =
      std::find_if(decision.candidates.begin(), decision.candidates.end(),
                   [&](const Decision::Candidate& option) { return option.name == name; });
  EXPECT_NE(found, decision.candidates.end()) << name;
  return found->verdict;
}

std::string chosen(const Decision& decision) {
  return decision.candidates[decision.selection.versions.at(0).candidate].name;
}

TEST(Candidates, RefusalsGiveReasons) {
  const std::string plain = "pads = [1, 1, 1, 1]";
  EXPECT_TRUE(verdict_of(decision_for(convolution(64, plain)), "winograd 4x4").accepts);
  EXPECT_EQ(verdict_of(decision_for(convolution(8, plain)), "winograd 4x4").reason,
            "transforms outweigh the products of fewer than 16 channels or outputs; here 8 and 40");
  EXPECT_EQ(verdict_of(decision_for(convolution(64, plain + ", strides = [2, 2]")), "winograd 4x4")
                .reason,
            "not a 3x3 window of stride 1");
  EXPECT_TRUE(verdict_of(decision_for(convolution(64, plain, "N")), "winograd 2x2").accepts);
  EXPECT_TRUE(verdict_of(decision_for(R"(graph (x: f32[1, H, 20, 64]@NHWC) {
  w: f32[3, 3, 64, 40]@HWIO = constant f32[3, 3, 64, 40] normal(seed = 1, mean = 0.0, deviation = 0.1)
  y = conv(x, w)
  return y
}
)"),
                         "winograd 2x2")
                  .accepts);
  codegen::CompileOptions options = driver::cpu_options();
  options.allow_winograd = false;
  EXPECT_EQ(verdict_of(decision_for(convolution(64, plain), options), "winograd 4x4").reason,
            "disabled: larger rounding errors");
  EXPECT_EQ(chosen(decision_for(convolution(64, plain), options)), "tiles 6x16 by 325");
  const Decision product =
      decision_for("graph (a: f32[5, 7], b: f32[7, 3]) {\n  y = matmul(a, b)\n  return y\n}\n");
  EXPECT_EQ(verdict_of(product, "tiles 6x16").reason, "it writes along no loop of 4 or more");
  EXPECT_EQ(
      verdict_of(product, "dots 6").reason,
      "no operand is contiguous along a reduction loop of 8 or more iterations, with the other "
      "operand contiguous too or constant");
  EXPECT_EQ(chosen(product), "loops");
}

std::string few_outputs(int outputs, int channels, const std::string& attributes,
                        const std::string& width = "21") {
  return concat("graph (x: f32[2, 7, ", width, ", ", channels, "]@NHWC) {\n  w: f32[3, 3, ",
                channels, ", ", outputs, "]@HWIO = constant f32[3, 3, ", channels, ", ", outputs,
                "] normal(seed = 1, mean = 0.0, deviation = 0.1)\n  y = conv(x, w) {", attributes,
                "}\n  return y\n}\n");
}

TEST(Candidates, VectorizesReductionWithoutColumns) {
  EXPECT_EQ(chosen(decision_for(few_outputs(3, 64, "pads = [1, 1, 1, 1]"))), "dots 6");
  EXPECT_EQ(chosen(decision_for(few_outputs(1, 33, ""))), "dots 6");
  EXPECT_EQ(verdict_of(decision_for(few_outputs(8, 64, "")), "dots 6").reason,
            "a sum has columns, which tiles run along");
  // Also refused if the columns past the last whole vector were computed one by one.
  const auto classes = [](int columns) {
    return concat(
        "graph (x: f32[64, 96]) {\n  w = constant f32[96, ", columns,
        "] normal(seed = 1, mean = 0.0, deviation = 0.1)\n  y = matmul(x, w)\n  return y\n}\n");
  };
  EXPECT_EQ(chosen(decision_for(classes(5))), "dots 6");
  EXPECT_EQ(chosen(decision_for(classes(8))), "tiles 6x16");
  EXPECT_EQ(chosen(decision_for(classes(10))), "tiles 6x16");
  const Decision rowless =
      decision_for("graph (a: f32[1, 64], b: f32[64, 1]) {\n  y = matmul(a, b)\n  return y\n}\n");
  EXPECT_EQ(verdict_of(rowless, "dots 6").reason, "there are no rows that share an operand");
}

// Register tiles and plain loops treat all symbolic extents alike, for any formula.
TEST(Candidates, TilesSymbolicExtents) {
  for (const char* extent : {"n", "64*n", "floor((n - 1)/4) + 1"}) {
    EXPECT_EQ(chosen(decision_for(concat("graph (z: f32[n], x: f32[", extent, R"(, 16]) {
  w = constant f32[16, 16] normal(seed = 1, mean = 0.0, deviation = 0.1)
  y = matmul(x, w)
  return y
}
)"))),
              "tiles 6x16")
        << extent;
  }
}

TEST(Candidates, OffersEachTileShapeOnce) {
  const Decision one_row = decision_for(R"(graph (a: f32[1, 64]) {
  b = constant f32[64, 100] normal(seed = 1, mean = 0.0, deviation = 0.1)
  y = matmul(a, b)
  return y
}
)");
  EXPECT_EQ(verdict_of(one_row, "tiles 4x16").reason, "identical here to tiles 6x16");
  EXPECT_TRUE(verdict_of(one_row, "tiles 1x64").accepts);
}

// Every accepting candidate of products, windows, rows and plain loops agrees with the reference.
TEST(Candidates, EveryCandidateMatchesTheReference) {
  for (const std::string& text : {
           convolution(64, "pads = [1, 1, 1, 1]"),
           convolution(33, "pads = [1, 0, 2, 1], strides = [1, 2]"),
           convolution(5, "pads = [1, 1, 1, 1], dilations = [2, 1]"),
           std::string("graph (a: f32[3, 17, 21], b: f32[3, 21, 37]) {\n  y = matmul(a, b)\n  "
                       "return y\n}\n"),
           few_outputs(3, 64, "pads = [1, 1, 1, 1]"),
           few_outputs(1, 61, "strides = [2, 1]"),
           few_outputs(2, 9, "", "4"),
           std::string("graph (x: f32[9, 50]) {\n  y = softmax(x) {axis = -1}\n  return y\n}\n"),
           std::string("graph (x: f32[6, 7, 40]) {\n  y = reduce_sum(x) {axes = [1], keep_axes = "
                       "false}\n  return y\n}\n"),
           std::string(
               "graph (x: f32[33, 65]) {\n  y = transpose(x) {perm = [1, 0]}\n  return y\n}\n"),
       }) {
    const Graph graph = parse_graph(text, all_ops());
    const std::vector<Datum> inputs = models::random_inputs(graph, 3);
    const Tensor expected = reference::evaluate(graph, inputs).at(0).tensor();
    const Decision decision = codegen::decide(graph, driver::cpu_options()).front();
    std::size_t accepted = 0;
    for (std::size_t k = 0; k < decision.candidates.size(); ++k) {
      if (!decision.candidates[k].verdict.accepts) continue;
      SCOPED_TRACE(text + decision.candidates[k].name);
      ++accepted;
      codegen::CompileOptions options = driver::cpu_options();
      options.choose = [&](const Decision& asked) -> std::optional<codegen::Selection> {
        if (asked.work != decision.work) return std::nullopt;
        return codegen::Selection{{{k}}, "the test asks for it"};
      };
      const Program program = codegen::compile(graph, options).program;
      EXPECT_EQ(program.steps.front().candidate, decision.candidates[k].name);
      Tensor first;
      for (const int threads : {1, 3}) {
        const Tensor result = CompiledModel(program, threads).run(inputs).at(0).tensor();
        for (std::int64_t i = 0; i < result.size(); ++i) {
          ASSERT_NEAR(result.real_at(i), expected.real_at(i), 1e-4) << i;
        }
        if (threads == 1) first = result;
        EXPECT_TRUE(identical(result, first));
      }
    }
    EXPECT_GE(accepted, 2U) << text;
  }
}

// Versions by symbol range: infeasible ranges are dropped.
TEST(Candidates, VersionsBySymbolRange) {
  const Graph graph = parse_graph(R"(graph (a: f32[N, 24]) {
  b = constant f32[24, 40] normal(seed = 1, mean = 0.0, deviation = 0.1)
  y = matmul(a, b)
  return y
}
)",
                                  all_ops());
  codegen::CompileOptions options = driver::cpu_options();
  options.choose = [](const Decision& asked) -> std::optional<codegen::Selection> {
    std::vector<codegen::Version> versions;
    for (std::size_t k = 0; k < asked.candidates.size() && versions.size() < 3; ++k) {
      if (!asked.candidates[k].verdict.accepts) continue;
      const auto from = static_cast<std::int64_t>(versions.size()) * 5;
      versions.push_back(
          {k, "N", from, versions.size() == 2 ? asked.symbols.at("N").hi : from + 4});
    }
    return codegen::Selection{versions, "the test asks for it"};
  };
  const Program program = codegen::compile(graph, options).program;
  ASSERT_EQ(program.steps.size(), 3U);
  CompiledModel model(program, 2);
  for (const std::int64_t rows : {1, 4, 5, 9, 10, 200}) {
    const std::vector<Datum> inputs = models::random_inputs(graph, 3, {{"a", {rows, 24}}});
    const Tensor expected = reference::evaluate(graph, inputs).at(0).tensor();
    const Tensor result = model.run(inputs).at(0).tensor();
    ASSERT_EQ(result.shape(), expected.shape());
    for (std::int64_t i = 0; i < result.size(); ++i)
      ASSERT_NEAR(result.real_at(i), expected.real_at(i), 1e-5);
  }
}

// Direct convolution was costed for the batch of the size hint, Winograd for a batch of one.
TEST(Candidates, SymbolicBatchIsDecidedAtItsMinimum) {
  for (const char* cpu : {"zen4", "sapphire-rapids", "x86-64-v3"}) {
    for (const auto& [side, channels] :
         {std::pair(56, 64), std::pair(28, 128), std::pair(14, 256), std::pair(7, 512)}) {
      const auto chosen_for = [&](const char* batch) {
        const std::string text = concat(
            "graph (x: f32[", batch, ", ", side, ", ", side, ", ", channels,
            "]@NHWC) {\n  w: f32[3, 3, ", channels, ", ", channels, "]@HWIO = constant f32[3, 3, ",
            channels, ", ", channels, "] normal(seed = 1, mean = 0.0, deviation = 0.1)\n",
            "  y = conv(x, w) {pads = [1, 1, 1, 1]}\n  return y\n}\n");
        const std::string name =
            chosen(codegen::decide(parse_graph(text, all_ops()), driver::cpu_options(cpu)).front());
        return name.substr(0, name.find(' '));
      };
      EXPECT_EQ(chosen_for("N"), chosen_for("1")) << cpu << ", " << channels << " channels";
    }
  }
}

TEST(Candidates, ExplainPrintsVerdicts) {
  const driver::Explanation explanation =
      driver::explain(parse_graph(convolution(64, "pads = [1, 1, 1, 1]"), all_ops()), "y");
  ASSERT_FALSE(explanation.kernels.empty());
  const auto& candidates = explanation.kernels.back().candidates;
  EXPECT_EQ(candidates.front().text.rfind("chosen: least estimated cost; about ", 0), 0U)
      << candidates.front().text;
  EXPECT_EQ(candidates.back().text.rfind("refuses: ", 0), 0U);
}

}  // namespace
}  // namespace tenon::candidates_test
