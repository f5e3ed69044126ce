#include "autodiff/gradient_by_rule.h"
#include "base/error.h"
#include "ir/graph.h"
#include "reference/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tenon::gradient_by_rule_test {
namespace {

const Tensor& one_result(const std::vector<Datum>& results) { return results.at(0).tensor(); }

// A rule in terms of the result alone does not recompute it.
TEST(GradientByRule, RuleOfTheResult) {
  Builder build;
  const Var y = build.input("y", "f32[2]"), dy = build.input("dy", "f32[2]");
  build.output(gradient_by_rule(build, "tanh", Var(), y, dy, "dx"));
  EXPECT_TRUE(build.graph().find("dx"));
  const auto results = reference::evaluate(
      build.graph(), {Datum(Tensor::of(DType::F32, {2}, std::vector<double>{0.5, -0.25})),
                      Datum(Tensor::of(DType::F32, {2}, std::vector<double>{2, 4}))});
  EXPECT_NEAR(one_result(results).real_at(0), 2 * (1 - 0.25), 1e-6);
  EXPECT_NEAR(one_result(results).real_at(1), 4 * (1 - 0.0625), 1e-6);
}

// A rule in terms of the operand: the result that the rule reads is recomputed.
TEST(GradientByRule, RuleOfTheOperand) {
  Builder build;
  const Var x = build.input("x", "f64[1]"), dy = build.input("dy", "f64[1]");
  build.output(gradient_by_rule(build, "sigmoid", x, Var(), dy));
  const auto results = reference::evaluate(
      build.graph(), {Datum(Tensor::of(DType::F64, {1}, std::vector<double>{0.3})),
                      Datum(Tensor::of(DType::F64, {1}, std::vector<double>{1}))});
  const double y = 1 / (1 + std::exp(-0.3));
  EXPECT_NEAR(one_result(results).real_at(0), y * (1 - y), 1e-12);
}

TEST(GradientByRule, RefusesMissingOperands) {
  Builder build;
  const Var y = build.input("y", "f32[2]"), dy = build.input("dy", "f32[2]");
  EXPECT_THROW(gradient_by_rule(build, "softplus", Var(), y, dy), Error);
}

}  // namespace
}  // namespace tenon::gradient_by_rule_test
