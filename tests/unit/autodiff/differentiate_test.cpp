#include "autodiff/differentiate.h"
#include "base/error.h"
#include "ir/graph.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/definition/registry.h"
#include "passes/definition/pass.h"
#include "reference/evaluate.h"

#include <gtest/gtest.h>

namespace tenon::differentiate_test {
namespace {

Tensor reals(std::vector<double> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return Tensor::of(DType::F64, {count}, values);
}

TEST(Differentiate, AddsGradientsOfAllPaths) {
  Builder b;
  const Var x = b.input("x", "f64[3]");
  const Var y = x * x + x * 3.0;  // dy/dx = 2x + 3
  for (Var gradient : differentiate(b, y, {x})) b.output(gradient, "dx");
  const Graph graph = b.take();
  const Tensor slopes = reference::evaluate(graph, {reals({1, 2, -1})}).front().tensor();
  EXPECT_EQ(slopes.reals(), (std::vector<double>{5, 7, 1}));
}

TEST(Differentiate, ZerosForIrrelevantInputs) {
  Builder b;
  const Var x = b.input("x", "f64[2]"), z = b.input("z", "f64[2]");
  const std::vector<Var> gradients = differentiate(b, x * 2.0, {x, z});
  b.output(gradients[0], "dx");
  b.output(gradients[1], "dz");
  const Graph graph = b.take();
  const std::vector<Datum> slopes = reference::evaluate(graph, {reals({1, 2}), reals({3, 4})});
  EXPECT_EQ(slopes[0].tensor().reals(), (std::vector<double>{2, 2}));
  EXPECT_EQ(slopes[1].tensor().reals(), (std::vector<double>{0, 0}));
}

TEST(Differentiate, ReportsOpsWithoutGradient) {
  Builder b;
  const Var x = b.input("x", "f64[2, 2]");
  const Var y = b.call("round", {x});
  try {
    differentiate(b, y, {x});
    FAIL() << "an error was expected";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
    EXPECT_NE(std::string(error.what()).find("cannot differentiate through"), std::string::npos);
  }
}

TEST(Differentiate, RefusesDataDependentAttributes) {
  Builder b;
  const Var x = b.input("x", "f64[2, 3]"), axes = b.input("axes", "i64[1]");
  const Var y = b.call("reduce_sum", {x, axes});
  EXPECT_THROW(differentiate(b, y, {x}), std::exception);
}

// A symbol's range carries over to the gradient's expressions.
TEST(Differentiate, ExtentsKeepTheirRanges) {
  const Graph graph = parse_graph(
      "graph g <C in [2, 9]> (x: f32[3, C], target: i64[3]) {\n  y = nll_loss(x, target)\n  return "
      "y\n}\n",
      all_ops());
  EXPECT_NO_THROW(verify(passes::find_pass("gradient").run(graph, {})));
}

}  // namespace
}  // namespace tenon::differentiate_test
