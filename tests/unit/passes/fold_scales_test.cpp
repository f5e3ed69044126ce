#include "base/text.h"
#include "driver/pipeline.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "models/inputs.h"
#include "models/model.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"
#include "testing/compare.h"
#include "unit/passes/written_out.h"

#include <gtest/gtest.h>

#include <fstream>

namespace tenon::fold_scales_test {
namespace {

using testing::count_of;

Graph folded(Graph graph, passes::Remarks* remarks = nullptr) {
  driver::PipelineOptions options;
  options.passes = {"fold-constants", "simplify", "fold-scales"};
  options.pass_options.remarks = remarks;
  return driver::run_pipeline(std::move(graph), options);
}

struct Network {
  const char* model;
  std::size_t batch_norms_before, batch_norms_after;
};

class FoldScales : public ::testing::TestWithParam<Network> {};

// The remaining norms of DenseNet precede a relu, which blocks their shift.
TEST_P(FoldScales, LeavesOnlyNormsBeforeRelus) {
  const Graph graph = models::load_model(GetParam().model);
  EXPECT_EQ(count_of(graph, "batch_norm"), GetParam().batch_norms_before);
  const Graph after = folded(graph);
  verify(after);
  EXPECT_EQ(count_of(after, "batch_norm"), GetParam().batch_norms_after);
  EXPECT_EQ(count_of(after, "conv"), count_of(graph, "conv"));
}

INSTANTIATE_TEST_SUITE_P(Zoo, FoldScales,
                         ::testing::Values(Network{"zoo:resnet18", 20, 0},
                                           Network{"zoo:resnet18?layout=NHWC,batch=N", 20, 0},
                                           Network{"zoo:resnet50", 53, 0},
                                           Network{"zoo:mobilenet_v2", 52, 0},
                                           Network{"zoo:densenet121", 121, 62}));

// Every graph of tests/passes/fold_scales.test gives the same results before and after, also with
// infinities and NaN around the scales.
TEST(FoldScalesNumbers, MatchUnfoldedScales) {
  std::ifstream file("tests/passes/fold_scales.test");
  ASSERT_TRUE(file);
  std::string line, text;
  int count = 0;
  for (bool is_inside = false; std::getline(file, line);) {
    if (line.rfind("run ", 0) == 0) {
      is_inside = true;
      text.clear();
    } else if (line == "----" && is_inside) {
      is_inside = false;
      driver::PipelineOptions options;
      options.passes = {"fold-scales"};
      options.verify_each = true;
      options.verify_trials = 8;
      EXPECT_NO_THROW(driver::run_pipeline(parse_graph(text, all_ops()), options)) << text;
      ++count;
    } else if (is_inside) {
      text += line + "\n";
    }
  }
  EXPECT_GT(count, 30);
}

TEST(FoldScalesNumbers, NetworksWithin1e5) {
  const Graph before = models::load_model("zoo:resnet18?size=32,classes=10");
  const Graph after = folded(before);
  const std::vector<Datum> inputs = models::random_inputs(before, 1);
  const std::vector<Datum> expected = reference::evaluate(before, inputs);
  const std::vector<Datum> actual = reference::evaluate(after, inputs);
  const testing::Comparison comparison = testing::compare(actual[0], expected[0], {1e-5, 1e-5});
  EXPECT_TRUE(comparison.is_equal) << comparison.what;
}

std::string said_about(const passes::Remarks& remarks, std::string_view value) {
  std::string text;
  for (const passes::Remarks::Entry& entry : remarks.about(value)) {
    if (entry.pass == "fold-scales") text += (text.empty() ? "" : "; ") + entry.text;
  }
  return text;
}

// Large seeded weights are scaled lazily: the constant keeps its seed and factors, and materializes
// to the same values as an eager product.
TEST(FoldScalesNumbers, LargeWeightsKeepFactors) {
  const auto product = [](const char* factors) {
    return concat(
        "graph (x: f32[1, 64, 4, 4]) {\n"
        "  w = constant f32[64, 64, 3, 3] normal(seed = 3, mean = 0.0, deviation = 0.1)\n"
        "  c = conv(x, w)\n"
        "  s = constant f32[64, 1, 1] ",
        factors, "\n  y = mul(c, s)\n  return y\n}\n");
  };
  const auto weights = [](const Graph& graph) -> const Constant& {
    return *graph.constant_of(graph.find("w"));
  };
  const Graph graph = parse_graph(product("uniform(seed = 4, low = 0.5, high = 2.0)"), all_ops());
  const Graph after = folded(graph);
  const Constant& made = weights(after);
  ASSERT_EQ(made.kind(), Constant::Kind::Scaled);
  EXPECT_TRUE(identical(made.base(), weights(graph)));
  EXPECT_EQ(made.factors().shape(), (Shape{64, 1, 1, 1}));
  const Tensor scales = graph.constant_of(graph.find("s"))->materialise();
  const Tensor before = weights(graph).materialise(), scaled = made.materialise();
  for (std::int64_t k = 0; k < before.size(); ++k) {
    const double by = scales.real_at(k / (64 * 9));
    ASSERT_EQ(scaled.as<float>()[static_cast<std::size_t>(k)],
              static_cast<float>(before.real_at(k) * by));
  }
  // A second scale is folded into the same factors: one product per weight.
  std::string twice = product("uniform(seed = 4, low = 0.5, high = 2.0)");
  twice.replace(twice.find("  return y"), 0, "  t = constant f32[] 3\n  z = mul(y, t)\n");
  twice.replace(twice.find("return y"), 8, "return z");
  const Graph both = folded(parse_graph(twice, all_ops()));
  EXPECT_EQ(count_of(both, "mul"), 0u);
  ASSERT_EQ(weights(both).kind(), Constant::Kind::Scaled);
  EXPECT_EQ(weights(both).factors().real_at(5), 3 * made.factors().real_at(5));
  // Weights that might vanish or overflow are checked one by one, and the scale stays.
  for (const char* factors : {"uniform(seed = 4, low = 1e-44, high = 3e-44)", "splat 3e38"}) {
    Graph far = parse_graph(product(factors), all_ops());
    far.set_attribute(
        far.value(far.find("w")).producer, "value",
        Constant(Constant::normal(DType::F32, {64, 64, 3, 3}, 3, 0, 10).materialise()));
    const Constant stored = weights(far);
    far = folded(std::move(far));
    EXPECT_EQ(count_of(far, "mul"), 1u) << factors;
    EXPECT_TRUE(identical(weights(far), stored));
  }
}

TEST(FoldScalesRemarks, StateTargetOrReason) {
  const Graph graph = parse_graph(R"(graph (x: f32[1, 2, 3, 3]) {
    w = constant f32[2, 2, 1, 1] [1, 2, 3, 4]
    s = constant f32[2, 1, 1] [2, 3]
    c = conv(x, w)
    p = mul(c, s)
    e = exp(p)
    q = mul(e, s)
    z = tanh(q)
    return z
  })",
                                  all_ops());
  passes::Remarks remarks;
  folded(graph, &remarks);
  EXPECT_EQ(said_about(remarks, "p"), "folded into 'c', which it reads");
  EXPECT_EQ(said_about(remarks, "c"), "takes the scale of 'p'");
  EXPECT_EQ(said_about(remarks, "q"),
            "not folded backwards: exp 'e': it has no weights to fold the scale into; "
            "not folded forwards: tanh 'z': it has no weights to fold the scale into");
}

}  // namespace
}  // namespace tenon::fold_scales_test
