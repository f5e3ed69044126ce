// Depthwise convolutions with trimmed padding: windows are cut at the image's edges, without a
// padded copy.
#include "base/error.h"
#include "driver/compile.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tenon::loop_peeling_test {
namespace {

struct Shape {
  int images, height, width, channels, window, stride, before, after, dilation;
};

// A convolution with static or symbolic image extents; symbolic ones need a padded copy.
std::string depthwise(const Shape& s, bool has_symbols) {
  const std::string extents = has_symbols ? "H, W" : concat(s.height, ", ", s.width);
  const std::string weights = concat("f32[", s.window, ", ", s.window, ", 1, ", s.channels, "]");
  return concat(
      "graph (x: f32[", s.images, ", ", extents, ", ", s.channels, "]@NHWC) {\n  w: ", weights,
      "@HWIO = constant ", weights,
      " normal(seed = 1, mean = 0.0, deviation = 0.5)\n  y = conv(x, w) {groups = ", s.channels,
      ", strides = [", s.stride, ", ", s.stride, "], dilations = [", s.dilation, ", ", s.dilation,
      "], pads = [", s.before, ", ", s.before, ", ", s.after, ", ", s.after, "]}\n  return y\n}\n");
}

// One register tile, two, many; windows larger than a tile, and over both edges at once; padding on
// one side only; channels that do not fill a vector.
constexpr Shape kShapes[] = {
    {1, 7, 7, 32, 3, 1, 1, 1, 1},    {1, 14, 14, 40, 5, 1, 2, 2, 1},
    {2, 56, 56, 24, 3, 1, 1, 1, 1},  {1, 12, 113, 32, 3, 2, 1, 0, 1},
    {1, 12, 112, 64, 3, 2, 1, 1, 1}, {1, 28, 28, 7, 5, 2, 2, 2, 1},
    {1, 3, 2, 32, 5, 1, 2, 2, 1},    {1, 1, 1, 16, 3, 1, 1, 1, 1},
    {1, 20, 33, 32, 7, 1, 3, 3, 1},  {1, 20, 40, 32, 3, 1, 4, 4, 4},
    {1, 9, 30, 32, 9, 1, 4, 4, 1},   {1, 6, 64, 32, 3, 1, 20, 20, 1},
};

// Every element is accumulated as from a padded copy, on any number of threads.
TEST(LoopPeeling, IsBitIdenticalToPadding) {
  for (const Shape& shape : kShapes) {
    const std::string text = depthwise(shape, false);
    const Graph graph = parse_graph(text, all_ops());
    const std::vector<Datum> inputs = models::random_inputs(graph, 5, {});
    const Tensor expected = reference::evaluate(graph, inputs).front().tensor();
    const Graph copying = parse_graph(depthwise(shape, true), all_ops());
    const Tensor copied = CompiledModel(codegen::compile(copying, driver::cpu_options()).program, 1)
                              .run(inputs)
                              .front()
                              .tensor();
    const Program program = codegen::compile(graph, driver::cpu_options()).program;
    for (const int threads : {1, 2, 3}) {
      const Tensor made = CompiledModel(program, threads).run(inputs).front().tensor();
      EXPECT_TRUE(identical(made, copied)) << text;
    }
    for (std::int64_t k = 0; k < expected.size(); ++k)
      ASSERT_NEAR(copied.real_at(k), expected.real_at(k), 1e-4) << text;
  }
}

// Infinities and NaN at an edge stay in the windows that contain them; padding zeros still multiply
// weights.
TEST(LoopPeeling, MultipliesPaddingZeros) {
  const Graph graph = parse_graph(R"(graph (x: f32[1, 4, 4, 16]@NHWC) {
  w: f32[3, 3, 1, 16]@HWIO = constant f32[3, 3, 1, 16] splat inf
  y = conv(x, w) {groups = 16, pads = [1, 1, 1, 1]}
  return y
}
)",
                                  all_ops());
  const std::vector<Datum> inputs = models::random_inputs(graph, 5, {});
  const Tensor expected = reference::evaluate(graph, inputs).front().tensor();
  const Tensor made = CompiledModel(codegen::compile(graph, driver::cpu_options()).program, 1)
                          .run(inputs)
                          .front()
                          .tensor();
  for (std::int64_t k = 0; k < expected.size(); ++k)
    EXPECT_EQ(std::isnan(made.real_at(k)), std::isnan(expected.real_at(k))) << k;
}

std::size_t kernel_count(const std::string& text) {
  return codegen::compile(parse_graph(text, all_ops()), driver::cpu_options("zen4"))
      .program.kernels.size();
}

// An image larger than the last-level cache is copied in parts, by this kernel or a separate one.
TEST(LoopPeeling, CopiesOnlyLargeImages) {
  EXPECT_EQ(kernel_count(depthwise({1, 14, 14, 32, 3, 1, 1, 1, 1}, false)), 1U);
  EXPECT_EQ(kernel_count(depthwise({1, 14, 14, 32, 3, 1, 1, 1, 1}, true)), 2U);
}

}  // namespace
}  // namespace tenon::loop_peeling_test
