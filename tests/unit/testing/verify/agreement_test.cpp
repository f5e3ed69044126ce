#include "ir/text.h"
#include "ops/definition/registry.h"
#include "testing/verify/agreement.h"

#include <gtest/gtest.h>

#include <array>
#include <charconv>
#include <cmath>

namespace tenon::agreement_test {
namespace {

Tensor halves(std::initializer_list<double> elements) {
  Tensor tensor(DType::F16, {static_cast<std::int64_t>(elements.size())});
  std::int64_t k = 0;
  for (const double element : elements) tensor.set_real(k++, element);
  return tensor;
}

bool agrees(const Graph& graph, const std::vector<Datum>& inputs, Tensor actual) {
  const testing::Leeway leeway = testing::leeway_between(graph, graph);
  const std::vector<Datum> expected = reference::evaluate(graph, inputs);
  return !testing::difference_between({Datum(std::move(actual))}, expected, leeway, [&] {
    return testing::disturbed_outputs(graph, inputs, leeway.epsilon, {});
  });
}

// x / z overflows f16 and is infinite if the intermediate is rounded; an exact kernel is not
// reported as a difference.
TEST(Agreement, AcceptsWideIntermediatesOfNarrowFloats) {
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

// If the result itself overflows, only infinity is right.
TEST(Agreement, RequiresInfiniteResults) {
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

// 1 + erf(x) leaves gelu thirteen bits at -3.55, and the larger elements that would mask it are not
// among the outputs. A kernel with one approximation of the sum keeps all bits.
TEST(Agreement, AcceptsCancellationInsideANode) {
  const Graph graph = parse_graph(R"(graph (x: f32[2]) {
  a = gelu(x)
  y = reduce_max(a) {axes = [0], keep_axes = true}
  return y
})",
                                  all_ops());
  Tensor x(DType::F32, {2});
  x.set_real(0, -2.5305912);
  x.set_real(1, -3.5547829);
  const std::vector<Datum> inputs{Datum(x)};
  const double exact = 0.5 * x.real_at(1) * std::erfc(-x.real_at(1) * std::sqrt(0.5));
  const auto one = [](double number) {
    Tensor tensor(DType::F32, {1});
    tensor.set_real(0, number);
    return tensor;
  };
  EXPECT_TRUE(agrees(graph, inputs, one(exact)));
  EXPECT_FALSE(agrees(graph, inputs, one(exact * 1.001)));
}

// The last digit of a sum depends on rounding, also in text; text that does not depend on rounding
// must be equal.
TEST(Agreement, ComparesNumbersInText) {
  const Graph graph = parse_graph(R"(graph (x: f32[3]) {
  s = reduce_sum(x) {axes = [0], keep_axes = true}
  y = cast_text(s) {to = string}
  return y
})",
                                  all_ops());
  Tensor x(DType::F32, {3});
  for (std::int64_t k = 0; k < 3; ++k) x.set_real(k, 0.3768062 + static_cast<double>(k) / 16);
  const std::vector<Datum> inputs{Datum(x)};
  const auto text = [](const std::string& number) { return Tensor::of_strings({1}, {number}); };
  const auto digits = [](float number) {
    std::array<char, 32> buffer;
    return std::string(buffer.data(), std::to_chars(buffer.begin(), buffer.end(), number).ptr);
  };
  const std::string sum = reference::evaluate(graph, inputs)[0].tensor().strings()[0];
  const float number = std::stof(sum);
  EXPECT_TRUE(agrees(graph, inputs, text(sum)));
  EXPECT_TRUE(agrees(graph, inputs, text(digits(std::nextafter(number, 2.0F)))));
  EXPECT_FALSE(agrees(graph, inputs, text(digits(number * 1.001F))));
  EXPECT_FALSE(agrees(graph, inputs, text(sum + "x")));
}

}  // namespace
}  // namespace tenon::agreement_test
