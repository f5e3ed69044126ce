#include "driver/compile.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tenon::compiled_test {
namespace {

// Outputs of zero, few and many bytes, in total more than a huge page: they share one allocation.
constexpr const char* kNet = R"(graph net (x: f32[n, 640], i: i64[3]) {
  zero = constant f32[] 0
  y = neg(x)
  j = add(i, i)
  e = slice(y) {starts = [0], ends = [0], axes = [1]}
  r = reduce_max(x) {axes = [1]}
  b = greater(x, zero)
  return y, j, e, r, b
}
)";

Tensor ramp(std::int64_t rows, double step) {
  Tensor x(DType::F32, {rows, 640});
  const std::span<float> values = x.as_mutable<float>();
  for (std::size_t k = 0; k < values.size(); ++k)
    values[k] = static_cast<float>(step * static_cast<double>(k % 101) - 3);
  return x;
}

TEST(CompiledModel, LargeOutputsOutliveTheModel) {
  const Graph graph = parse_graph(kNet, all_ops());
  CompiledModel model(driver::compile_graph(graph), 2);
  const Tensor i = Tensor::of_integers(std::vector<std::int64_t>{4, 5, 6});
  std::vector<std::vector<Datum>> inputs = {
      {ramp(1000, 0.25), i}, {ramp(1000, 0.5), i}, {ramp(3, 0.5), i}, {ramp(1200, 1), i}};
  std::vector<std::vector<Datum>> outputs;
  for (const auto& each : inputs) outputs.push_back(model.run(each));
  for (std::size_t run = 0; run < inputs.size(); ++run) {
    const std::vector<Datum> expected = reference::evaluate(graph, inputs[run]);
    ASSERT_EQ(outputs[run].size(), expected.size());
    for (std::size_t k = 0; k < expected.size(); ++k) {
      EXPECT_TRUE(identical(outputs[run][k].tensor(), expected[k].tensor()))
          << "run " << run << ", output " << k;
    }
  }
}

// A group that pads an empty tensor reads scratch that was not written; its bounds check never
// admits an element.
TEST(CompiledModel, PadsEmptyTensors) {
  const Graph graph = parse_graph(R"(graph (x: f32[3, 1, 0, 2]) {
  a = space_to_depth(x) {block = 2}
  b = pad(a) {pads = [1, 0, 0, 0, 1, 1], axes = [1, 2, 3]}
  w = constant f32[2, 5, 3, 3] normal(seed = 1, mean = 0.0, deviation = 1.0)
  z = constant f32[2] [1, 2]
  c = conv(b, w, z) {pads = [1, 1, 1, 1]}
  return c
})",
                                  all_ops());
  CompiledModel model(driver::compile_graph(graph), 1);
  const std::vector<Datum> results = model.run({Tensor(DType::F32, {3, 1, 0, 2})});
  const std::vector<float> expected = {1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2, 2};
  EXPECT_TRUE(std::ranges::equal(results.at(0).tensor().as<float>(), expected));
}

}  // namespace
}  // namespace tenon::compiled_test
