#include "base/error.h"
#include "driver/compile.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"
#include "runtime/guarded_call.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tenon::guarded_call_test {
namespace {

TEST(GuardedCall, CopiesInAndBack) {
  float x[3] = {1, 2, 3}, y[3] = {0, 0, 0};
  void* pointers[] = {x, y, y};
  for (const GuardedEnd end : {GuardedEnd::First, GuardedEnd::Last}) {
    const GuardedCall::Argument arguments[] = {{x, 12, true}, {y, 12, false}, {y, 8, false}};
    {
      const GuardedCall call(pointers, arguments, end);
      auto* in = static_cast<float*>(pointers[0]);
      auto* out = static_cast<float*>(pointers[1]);
      EXPECT_NE(in, x);
      EXPECT_EQ(pointers[1], pointers[2]);  // one overlaps the other
      for (int k = 0; k < 3; ++k) out[k] = 2 * in[k];
    }
    EXPECT_EQ(pointers[0], x);
    EXPECT_EQ(y[2], 6);
  }
}

volatile float sink;

TEST(GuardedCallDeathTest, TerminatesOnOutOfBoundsAccess) {
  float x[3] = {1, 2, 3};
  void* pointers[] = {x};
  const GuardedCall::Argument arguments[] = {{x, 12, true}};
  EXPECT_DEATH(
      {
        const GuardedCall call(pointers, arguments, GuardedEnd::Last);
        sink = static_cast<float*>(pointers[0])[3];
      },
      "");
  EXPECT_DEATH(
      {
        const GuardedCall call(pointers, arguments, GuardedEnd::First);
        sink = static_cast<float*>(pointers[0])[-1];
      },
      "");
  EXPECT_DEATH(
      {
        const GuardedCall call(pointers, arguments, GuardedEnd::Last);
        static_cast<float*>(pointers[0])[0] = 4;
      },
      "");
}

// Kernels with register tiles, remainders, windows past edges and scratch stay in bounds.
TEST(GuardedCall, KernelsStayInBounds) {
  const Graph graph = parse_graph(R"(graph (x: f32[1, 3, 7, 7], a: f32[5, 13], b: f32[13, 9]) {
  w = constant f32[5, 3, 3, 3] normal(seed = 1, mean = 0.0, deviation = 0.2)
  c = conv(x, w) {pads = [1, 1, 1, 1]}
  r = relu(c)
  m = matmul(a, b)
  s = softmax(m)
  return r, s
})",
                                  all_ops());
  std::vector<Datum> inputs;
  for (ValueId input : graph.inputs()) {
    Tensor tensor(DType::F32, constants(graph.value(input).type.tensor().dims));
    for (std::int64_t k = 0; k < tensor.size(); ++k)
      tensor.set_real(k, static_cast<double>(k % 7) - 3);
    inputs.emplace_back(std::move(tensor));
  }
  const std::vector<Datum> expected = CompiledModel(driver::compile_graph(graph), 2).run(inputs);
  for (const char* end : {"first", "last"}) {
    ASSERT_EQ(setenv("TENON_GUARD", end, 1), 0);
    const std::vector<Datum> actual = CompiledModel(driver::compile_graph(graph), 2).run(inputs);
    ASSERT_EQ(unsetenv("TENON_GUARD"), 0);
    for (std::size_t k = 0; k < expected.size(); ++k) {
      EXPECT_TRUE(identical(actual[k].tensor(), expected[k].tensor()));
    }
  }
}

TEST(GuardedCall, RefusesUnknownModes) {
  ASSERT_EQ(setenv("TENON_GUARD", "both", 1), 0);
  EXPECT_THROW(guarded_end(), Error);
  ASSERT_EQ(unsetenv("TENON_GUARD"), 0);
  EXPECT_FALSE(guarded_end());
}

}  // namespace
}  // namespace tenon::guarded_call_test
