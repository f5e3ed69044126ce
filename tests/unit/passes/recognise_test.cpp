#include "base/text.h"
#include "driver/pipeline.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "models/inputs.h"
#include "models/model.h"
#include "ops/definition/registry.h"
#include "passes/recognise/rules.h"
#include "reference/evaluate.h"
#include "testing/compare.h"
#include "unit/passes/written_out.h"

#include <gtest/gtest.h>

#include <fstream>

namespace tenon::recognise_test {
namespace {

using testing::count_of;
using testing::written_out;

Graph recognised(Graph graph) {
  driver::PipelineOptions options;
  options.passes = {"fold-constants", "simplify", "recognise", "fold-constants"};
  return driver::run_pipeline(std::move(graph), options);
}

// Number of composite operators that are found again after decomposition.
struct Parts {
  const char* model;
  std::size_t layer_norms, gelus, attentions;
};

class Recognise : public ::testing::TestWithParam<Parts> {};

TEST_P(Recognise, FindsAllOpsOfATransformer) {
  const Graph exported = written_out(models::load_model(GetParam().model));
  EXPECT_EQ(count_of(exported, "layer_norm") + count_of(exported, "gelu"), 0U);
  EXPECT_GT(count_of(exported, "shape"), 10U);
  const Graph graph = recognised(exported);
  EXPECT_EQ(count_of(graph, "layer_norm"), GetParam().layer_norms);
  EXPECT_EQ(count_of(graph, "gelu"), GetParam().gelus);
  EXPECT_EQ(count_of(graph, "attention"), GetParam().attentions);
  for (const char* gone : {"shape", "softmax", "erf", "tanh", "reduce_mean", "sqrt", "pow"}) {
    EXPECT_EQ(count_of(graph, gone), 0U) << gone;
  }
  // Layers read their values in the given order: only q, k, v and the result are transposed.
  EXPECT_LE(count_of(graph, "transpose"), 4 * GetParam().attentions + 1);
}

INSTANTIATE_TEST_SUITE_P(Zoo, Recognise,
                         ::testing::Values(Parts{"zoo:bert_base", 25, 12, 12},
                                           Parts{"zoo:bert_base?seq=S,batch=N", 25, 12, 12},
                                           Parts{"zoo:gpt2", 25, 12, 12},
                                           Parts{"zoo:gpt2?seq=S,past=P", 25, 12, 12},
                                           Parts{"zoo:gpt2?seq=1,past=P", 25, 12, 12},
                                           Parts{"zoo:vit_b16", 25, 12, 12},
                                           Parts{"zoo:vit_b16?batch=N", 25, 12, 12}));

// The graphs of tests/passes/recognise.test give the same results before and after.
TEST(RecogniseNumbers, MatchDecomposedOps) {
  std::ifstream file("tests/passes/recognise.test");
  ASSERT_TRUE(file);
  std::string line, text;
  int count = 0;
  for (bool is_inside = false; std::getline(file, line);) {
    if (line.rfind("run ", 0) == 0) {
      is_inside = true;
      text.clear();
    } else if (line == "----" && is_inside) {
      is_inside = false;
      const Graph before = parse_graph(text, all_ops());
      const Graph after = recognised(before);
      const bool is_half = text.find("f16") != std::string::npos;
      const testing::Tolerance tolerance =
          is_half ? testing::Tolerance{4e-3, 4e-3} : testing::Tolerance{1e-5, 1e-6};
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        const std::vector<Datum> inputs = models::random_inputs(before, seed);
        const std::vector<Datum> expected = reference::evaluate(before, inputs);
        const std::vector<Datum> actual = reference::evaluate(after, inputs);
        for (std::size_t k = 0; k < expected.size(); ++k) {
          const testing::Comparison comparison = compare(actual[k], expected[k], tolerance);
          EXPECT_TRUE(comparison.is_equal) << comparison.what << "\nin\n" << text;
        }
      }
      ++count;
    } else if (is_inside) {
      text += line + "\n";
    }
  }
  EXPECT_GT(count, 20);
}

TEST(RecogniseRules, AreValid) { EXPECT_GT(passes::recognition::rules().rules().size(), 25U); }

}  // namespace
}  // namespace tenon::recognise_test
