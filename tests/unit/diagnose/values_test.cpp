#include "codegen/compile.h"
#include "diagnose/check.h"
#include "diagnose/diff.h"
#include "diagnose/find_fault.h"
#include "diagnose/logical_order.h"
#include "diagnose/visit.h"
#include "driver/compile.h"
#include "ir/text.h"
#include "ops/definition/registry.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tenon::values_test {
namespace {

// A logarithm of possibly negative values inside a fused group.
constexpr const char* kLogs = R"(graph net (x: f32[4, 8]) {
  one = constant f32[] 1
  two = constant f32[] 2
  shifted = sub(x, one)
  logs = log(shifted)
  doubled = mul(logs, two)
  y = reduce_sum(doubled) {axes = [1], keep_axes = false}
  z = exp(y)
  return z
}
)";
// A network without faults, for passes that introduce one.
constexpr const char* kHarmless = R"(graph net (x: f32[4, 8]) {
  a = abs(x)
  one = constant f32[] 1
  b = add(a, one)
  c = sqrt(b)
  return c
}
)";
constexpr const char* kHarmed = R"(graph net (x: f32[4, 8]) {
  a = abs(x)
  one = constant f32[] 1
  b = sub(a, one)
  c = sqrt(b)
  return c
}
)";

Graph harm(Graph, const passes::PassOptions&) { return parse_graph(kHarmed, all_ops()); }
Graph keep(Graph graph, const passes::PassOptions&) { return graph; }

Tensor filled(Shape shape, float value) {
  Tensor tensor(DType::F32, std::move(shape));
  for (float& element : tensor.as_mutable<float>()) element = value;
  return tensor;
}

TEST(FindFault, NamesTheNodeInsideAGroup) {
  Tensor x = filled({4, 8}, 3);
  x.as_mutable<float>()[9] = 0.5F;
  const Graph graph = parse_graph(kLogs, all_ops());
  diagnose::FaultSearch search;
  search.rule.allows_non_finite = false;
  search.passes = driver::chosen_passes({});
  for (const bool is_compiled : {false, true}) {
    search.is_compiled = is_compiled;
    const auto found = diagnose::find_fault(graph, {x}, search);
    ASSERT_TRUE(found.has_value());
    EXPECT_NE(found->what.find("nan"), std::string::npos) << found->what;
    EXPECT_TRUE(found->inside.find("(log)") != std::string::npos || found->op == "log")
        << found->inside << found->op;
    EXPECT_EQ(found->pass, "");  // the model's own
    ASSERT_FALSE(found->inputs.empty());
    bool has_x = false;
    for (const auto& [name, value] : found->inputs)
      has_x = has_x || (name == "x" && identical(value, x));
    EXPECT_TRUE(has_x);
  }
  EXPECT_FALSE(diagnose::find_fault(graph, {filled({4, 8}, 3)}, search).has_value());
}

TEST(FindFault, NamesThePass) {
  diagnose::FaultSearch search;
  search.rule.allows_non_finite = false;
  search.passes = {{"keep-all", keep}, {"do-harm", harm}, {"keep-all", keep}};
  for (const bool is_compiled : {false, true}) {
    search.is_compiled = is_compiled;
    const auto found =
        diagnose::find_fault(parse_graph(kHarmless, all_ops()), {filled({4, 8}, 0.25F)}, search);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->value, "c");
    EXPECT_EQ(found->pass, "do-harm");
  }
}

TEST(FindFault, RangeLimitsMagnitudes) {
  diagnose::FaultSearch search;
  search.rule.most = 1e5;
  search.is_compiled = false;
  const Graph graph = parse_graph(kHarmless, all_ops());
  EXPECT_FALSE(diagnose::find_fault(graph, {filled({4, 8}, 1000)}, search).has_value());
  const auto found = diagnose::find_fault(graph, {filled({4, 8}, -3e5F)}, search);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->at_input, "x");
  EXPECT_EQ(found->what, "element [0, 0] is -3e+05 (32 of 32 elements)");
}

TEST(FaultIn, CountsViolations) {
  Tensor x = filled({2, 3}, 1);
  x.as_mutable<float>()[4] = INFINITY;
  x.as_mutable<float>()[5] = NAN;
  EXPECT_FALSE(diagnose::fault_in(x, {}).has_value());
  EXPECT_EQ(diagnose::fault_in(x, {.allows_non_finite = false})->what,
            "element [1, 1] is inf (2 of 6 elements)");
  EXPECT_FALSE(diagnose::fault_in(Tensor::of_integers(std::vector<std::int64_t>{1 << 20}),
                                  {.allows_non_finite = false, .most = 10})
                   .has_value());
}

// Compiled values have any layout; the observer sees them in the model's.
TEST(VisitCompiled, ConvertsToTheModelsLayout) {
  const Graph graph = parse_graph(R"(graph net (x: f32[1, 3, 9, 9]) {
  w = constant f32[8, 3, 3, 3] normal(seed = 1, mean = 0.0, deviation = 0.3)
  v = constant f32[8, 8, 3, 3] normal(seed = 2, mean = 0.0, deviation = 0.3)
  a = conv(x, w) {pads = [1, 1, 1, 1]}
  b = relu(a)
  c = conv(b, v) {pads = [1, 1, 1, 1]}
  d = add(c, b)
  return d
}
)",
                                  all_ops());
  Tensor x(DType::F32, {1, 3, 9, 9});
  for (std::int64_t k = 0; k < x.size(); ++k)
    x.set_real(k, 0.01 * static_cast<double>(k % 37) - 0.2);
  driver::PipelineOptions unfused;
  unfused.without = {"fuse"};
  const Graph made = driver::run_pipeline(graph, unfused);
  CompiledModel model(codegen::compile(made, driver::cpu_options()).program, 2);
  diagnose::ValueList compiled{"compiled", {}}, reference{"reference", {}};
  diagnose::visit_compiled(model, made, {x}, [&](const std::string& name, const Tensor& value) {
    compiled.values.emplace_back(name, value);
  });
  diagnose::visit_reference(graph, {x}, 1, [&](const std::string& name, const Tensor& value) {
    reference.values.emplace_back(name, value);
  });
  const diagnose::ValuesDiff diff = diagnose::diff_values(reference, compiled, {1e-4, 1e-5});
  EXPECT_GE(diff.values.size(), 4);
  EXPECT_EQ(diff.first(), nullptr) << diff.first()->name << ": " << diff.first()->comparison.what;
}

TEST(PlainOrder, UnpacksBlockedLayouts) {
  Tensor x(DType::F32, {1, 2, 1, 3, 4});  // NCHW4c of 8 channels
  for (std::int64_t k = 0; k < x.size(); ++k) x.set_real(k, static_cast<double>(k));
  const Tensor plain = diagnose::in_logical_order(x, Layout("NCHW4c"));
  EXPECT_EQ(plain.shape(), (Shape{1, 8, 1, 3}));
  EXPECT_EQ(plain.real_at(5 * 3 + 2), 12 + 2 * 4 + 1);
  const Tensor last = diagnose::in_logical_order(
      Tensor::of<float>(DType::F32, {1, 1, 2, 3}, {0, 1, 2, 3, 4, 5}), Layout("NHWC"));
  EXPECT_EQ(last.shape(), (Shape{1, 3, 1, 2}));
  EXPECT_EQ(last.reals(), (std::vector<double>{0, 3, 1, 4, 2, 5}));
}

TEST(DiffValues, FindsTheFirstDifferenceAndItsPass) {
  const Graph graph = parse_graph(kHarmless, all_ops());
  const std::vector<Datum> inputs = {filled({4, 8}, 3)};
  diagnose::ValueList a{"a", {}}, b{"b", {}};
  diagnose::visit_reference(graph, inputs, 1, [&](const std::string& name, const Tensor& value) {
    a.values.emplace_back(name, value);
  });
  diagnose::visit_reference(
      parse_graph(kHarmed, all_ops()), inputs, 1,
      [&](const std::string& name, const Tensor& value) { b.values.emplace_back(name, value); });
  const diagnose::ValuesDiff diff = diagnose::diff_values(a, b, {});
  ASSERT_NE(diff.first(), nullptr);
  EXPECT_EQ(diff.first()->name, "b");
  EXPECT_EQ(diff.first()->comparison.differing, 32);
  const std::vector<passes::Pass> passes = {{"keep-all", keep}, {"do-harm", harm}};
  EXPECT_EQ(diagnose::first_differing_pass(graph, inputs, passes, {}, 1), "do-harm");
  EXPECT_EQ(diagnose::first_differing_pass(graph, inputs, std::span(passes).first(1), {}, 1), "");
}

}  // namespace
}  // namespace tenon::values_test
