#include "driver/verify/agreement.h"
#include "ir/text.h"
#include "ops/registry.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tenon {
namespace {

Tensor halves(std::initializer_list<double> elements) {
  Tensor tensor(DType::F16, {static_cast<std::int64_t>(elements.size())});
  std::int64_t k = 0;
  for (const double element : elements) tensor.set_real(k++, element);
  return tensor;
}

bool agrees(const Graph& graph, const std::vector<Datum>& inputs, Tensor actual) {
  const Leeway leeway = leeway_between(graph, graph);
  const std::vector<Datum> expected = reference::evaluate(graph, inputs);
  return !difference_between({Datum(std::move(actual))}, expected, leeway,
                             [&] { return disturbed_outputs(graph, inputs, leeway.epsilon, {}); });
}

// x / z is too large for f16, and infinite where it is rounded in between; what is exact is not a
// difference.
TEST(Agreement, NarrowFloatsMayStayWideInsideAKernel) {
  const Graph graph = parse_graph(R"(graph (x: f16[2], z: f16[2]) {
  a = div(x, z)
  b = floor(a)
  c = mul(b, z)
  y = sub(x, c)
  return y
})",
                                  all_ops());
  const std::vector<Datum> inputs{Datum(halves({1000, 7})), Datum(halves({0.0009765625, 2}))};
  const std::vector<Datum> rounded = reference::evaluate(graph, inputs);
  EXPECT_TRUE(std::isinf(rounded[0].tensor().real_at(0)));
  EXPECT_TRUE(agrees(graph, inputs, rounded[0].tensor()));
  EXPECT_TRUE(agrees(graph, inputs, halves({0, 1})));
  EXPECT_FALSE(agrees(graph, inputs, halves({0, 3})));
}

// Where the result itself is too large there is one answer.
TEST(Agreement, AnInfiniteResultIsInfinite) {
  const Graph graph = parse_graph(R"(graph (x: f16[1], z: f16[1]) {
  a = mul(x, z)
  y = add(a, x)
  return y
})",
                                  all_ops());
  const std::vector<Datum> inputs{Datum(halves({1000})), Datum(halves({1000}))};
  EXPECT_TRUE(agrees(graph, inputs, halves({HUGE_VAL})));
  EXPECT_FALSE(agrees(graph, inputs, halves({65504})));
}

}  // namespace
}  // namespace tenon
