#include "codegen/guards.h"
#include "driver/compile.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "ops/definition/registry.h"
#include "program/verify.h"
#include "reference/evaluate.h"
#include "tuned_cpu.h"

#include <gtest/gtest.h>

#include <set>

namespace tenon::specialised_shapes_test {
namespace {

using codegen::Guards;

bool holds(const Guards& guards, std::int64_t n, std::int64_t s) {
  return std::all_of(guards.begin(), guards.end(), [&](const Program::Guard& guard) {
    const std::int64_t value = guard.symbol == 0 ? n : s;
    return value >= guard.lo && value <= guard.hi;
  });
}

// For any division of guards, each pair of values is accepted exactly once.
TEST(Guards, PartitionTheRange) {
  const std::vector<Program::Symbol> symbols = {{"N", 1, 6, 0, 0}, {"S", 0, 9, 0, 1}};
  std::vector<Guards> parts, left = {{}};
  const std::vector<std::map<std::size_t, std::int64_t>> hot = {
      {{0, 1}}, {{0, 3}, {1, 5}}, {{1, 9}}, {{0, 1}, {1, 2}}};
  for (const auto& values : hot) {
    codegen::DividedGuards divided = codegen::divide(left, values, symbols);
    parts.insert(parts.end(), divided.inside.begin(), divided.inside.end());
    left = std::move(divided.outside);
  }
  parts.insert(parts.end(), left.begin(), left.end());
  for (std::int64_t n = 1; n <= 6; ++n) {
    for (std::int64_t s = 0; s <= 9; ++s) {
      EXPECT_EQ(std::count_if(parts.begin(), parts.end(),
                              [&](const Guards& g) { return holds(g, n, s); }),
                1)
          << n << ", " << s;
    }
  }
}

const char* const kImages = R"(graph <N in [1, 16]> (x: f32[N, 16, 16, 32]@NHWC) {
  w: f32[3, 3, 32, 40]@HWIO = constant f32[3, 3, 32, 40] normal(seed = 1, mean = 0.0, deviation = 0.1)
  v: f32[1, 1, 40, 24]@HWIO = constant f32[1, 1, 40, 24] normal(seed = 2, mean = 0.0, deviation = 0.2)
  t = conv(x, w) {pads = [1, 1, 1, 1]}
  u = relu(t)
  y = conv(u, v)
  return y
}
)";

TEST(SpecialisedShapes, OneProgramServesAllShapes) {
  const Graph graph = parse_graph(kImages, all_ops());
  const Program plain = codegen::compile(graph, testing::tuned_cpu()).program;
  codegen::CompileOptions options = testing::tuned_cpu();
  options.specialised_shapes = {{{"N", 1}}, {{"N", 8}}};
  const Program program = codegen::compile(graph, options).program;
  verify(program);
  EXPECT_GT(program.kernels.size(), plain.kernels.size());
  EXPECT_EQ(program.constant_bytes,
            plain.constant_bytes);  // equal weights are stored once
  for (const int threads : {1, 3}) {
    CompiledModel model(program, threads);
    for (const std::int64_t n : {8, 1, 2, 16}) {
      const std::vector<Datum> inputs = models::random_inputs(graph, 5, {{"x", {n, 16, 16, 32}}});
      const Tensor expected = reference::evaluate(graph, inputs).front().tensor();
      const Tensor actual = model.run(inputs).front().tensor();
      ASSERT_EQ(actual.shape(), expected.shape());
      for (std::int64_t k = 0; k < actual.size(); ++k)
        ASSERT_NEAR(actual.real_at(k), expected.real_at(k), 1e-4) << n;
    }
  }
}

// Specialisation on two symbols and on one; impossible values and unknown symbols.
TEST(SpecialisedShapes, SeveralSymbols) {
  const Graph graph = parse_graph(
      R"(graph <Q in [1, 100], K> (q: f32[1, 2, Q, 16], k: f32[1, 2, K, 16], v: f32[1, 2, K, 24]) {
  y = attention(q, k, v)
  z = exp(q)
  return y, z
}
)",
      all_ops());
  codegen::CompileOptions options = testing::tuned_cpu();
  options.specialised_shapes = {{{"Q", 40}, {"K", 33}}, {{"Q", 40}}, {{"Q", 1000}}, {{"M", 2}}};
  const Program program = codegen::compile(graph, options).program;
  verify(program);
  CompiledModel model(program, 2);
  for (const std::int64_t queries : {40, 7}) {
    for (const std::int64_t keys : {33, 50}) {
      const std::vector<Datum> inputs = models::random_inputs(
          graph, 5, {{"q", {1, 2, queries, 16}}, {"k", {1, 2, keys, 16}}, {"v", {1, 2, keys, 24}}});
      const std::vector<Datum> expected = reference::evaluate(graph, inputs),
                               actual = model.run(inputs);
      for (std::size_t output = 0; output < 2; ++output) {
        const Tensor &a = actual[output].tensor(), &e = expected[output].tensor();
        ASSERT_EQ(a.shape(), e.shape());
        for (std::int64_t k = 0; k < a.size(); ++k)
          ASSERT_NEAR(a.real_at(k), e.real_at(k), 1e-4) << queries << ", " << keys;
      }
    }
  }
}

}  // namespace
}  // namespace tenon::specialised_shapes_test
