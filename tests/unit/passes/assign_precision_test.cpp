#include "driver/pipeline.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "models/model.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"
#include "target/gpu_facts.h"
#include "testing/compare.h"
#include "unit/passes/written_out.h"

#include <gtest/gtest.h>

namespace tenon::assign_precision_test {
namespace {

using testing::count_of;

Graph narrowed(Graph graph, const std::string& to, passes::Remarks* remarks = nullptr) {
  driver::PipelineOptions options;
  options.passes = {"fold-constants", "simplify", "fold-scales", "assign-precision"};
  passes::set_option(options.pass_options, "assign-precision.to=" + to);
  options.pass_options.remarks = remarks;
  return driver::run_pipeline(std::move(graph), options);
}

// A residual is stored once, in the element type of the products that read it.
TEST(KeptValues, NarrowOnlyOnDevices) {
  const Graph graph = parse_graph(R"(graph (x: f32[4, 8]) {
  w = constant f32[8, 8] normal(seed = 1, mean = 0.0, deviation = 0.5)
  scale = constant f32[8] [1, 1, 1, 1, 1, 1, 1, 1]
  n = layer_norm(x, scale)
  m = matmul(n, w)
  y = add(n, m)
  return y
}
)",
                                  all_ops());
  driver::PipelineOptions options;
  options.passes = {"assign-precision"};
  const Graph on_processor = driver::run_pipeline(graph, options);
  options.pass_options.target = gpu_facts("sm_90a");
  const Graph on_device = driver::run_pipeline(graph, options);
  const auto residual_of = [](const Graph& made) {
    const ValueId sum = made.outputs()[0];
    return made.value(made.node(made.value(sum).producer).operands[0]).name;
  };
  EXPECT_EQ(residual_of(on_processor), "n");
  EXPECT_EQ(residual_of(on_device), "n_f16_f32");
  const std::vector<Datum> inputs = models::random_inputs(graph, 1);
  const testing::Comparison comparison =
      testing::compare(reference::evaluate(on_device, inputs)[0],
                       reference::evaluate(graph, inputs)[0], {5e-3, 5e-3});
  EXPECT_TRUE(comparison.is_equal) << comparison.what;
}

struct Network {
  const char* model;
  const char* to;
  double tolerance;
};

class AssignPrecision : public ::testing::TestWithParam<Network> {};

TEST_P(AssignPrecision, ErrorWithinTheType) {
  const Graph before = models::load_model(GetParam().model);
  const Graph after = narrowed(before, GetParam().to);
  const std::vector<Datum> inputs = models::random_inputs(before, 1);
  const Datum expected = reference::evaluate(before, inputs)[0];
  const Datum actual = reference::evaluate(after, inputs)[0];
  const double tolerance = GetParam().tolerance;
  const testing::Comparison comparison = testing::compare(actual, expected, {tolerance, tolerance});
  EXPECT_TRUE(comparison.is_equal) << comparison.what;
  // Guards against a vacuous test: some rounding must have happened.
  EXPECT_FALSE(testing::compare(actual, expected, {1e-6, 1e-6}).is_equal);
}

INSTANTIATE_TEST_SUITE_P(
    Zoo, AssignPrecision,
    ::testing::Values(Network{"zoo:mlp", "f16", 4e-3}, Network{"zoo:mlp", "bf16", 3e-2},
                      Network{"zoo:resnet18?size=32,classes=10", "f16", 1e-2},
                      Network{"zoo:resnet18?size=32,classes=10", "bf16", 8e-2}));

// A ResNet is narrow except for the mean before its last layer: one cast at each interface, two
// around the mean.
TEST(AssignPrecisionCasts, OnlyAtInterfaces) {
  const Graph graph = narrowed(models::load_model("zoo:resnet18"), "f16");
  EXPECT_EQ(count_of(graph, "cast"), 4U);
  EXPECT_EQ(to_string(graph.value(graph.inputs()[0]).type), "f32[1, 3, 224, 224]");
  EXPECT_EQ(to_string(graph.value(graph.outputs()[0]).type), "f32[1, 1000]");
  for (NodeId id : graph.nodes_in_order()) {
    if (graph.op_name(id) != "conv") continue;
    EXPECT_EQ(graph.value(graph.node(id).operands[0]).type.tensor().dtype, DType::F16);
    EXPECT_EQ(graph.constant_of(graph.node(id).operands[1])->dtype(), DType::F16);
  }
}

TEST(AssignPrecisionRemarks, StateTypesOfNodes) {
  const Graph graph = parse_graph(R"(graph (x: f32[2, 2]) {
    m = constant f32[] -1e9
    a = matmul(x, x)
    b = relu(a)
    c = add(b, m)
    d = exp(b)
    e = mul(c, d)
    return e
  })",
                                  all_ops());
  passes::Remarks remarks;
  narrowed(graph, "f16", &remarks);
  const auto said = [&](std::string_view value) {
    std::string text;
    for (const passes::Remarks::Entry& entry : remarks.about(value)) {
      if (entry.pass == "assign-precision") text += entry.text;
    }
    return text;
  };
  EXPECT_EQ(said("a"), "computes in f16");
  EXPECT_EQ(said("b"), "computes in f16");
  EXPECT_EQ(said("c"), "stays in f32: constant 'm' is too large for f16");
  EXPECT_EQ(said("d"), "stays in f32: exp needs it");
  EXPECT_EQ(said("e"), "stays in f32: 'c' comes in f32");
}

}  // namespace
}  // namespace tenon::assign_precision_test
