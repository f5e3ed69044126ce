// Values at the limits of their types: compiled results against the reference.
#include "base/error.h"
#include "driver/compile.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"
#include "testing/verify/agreement.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tenon::edge_values_test {
namespace {

// Expects the reference's bits; all NaN are equal.
void expect_exact(const std::string& text, const std::vector<Datum>& inputs) {
  const Graph graph = parse_graph(text, all_ops());
  const std::vector<Datum> expected = reference::evaluate(graph, inputs);
  CompiledModel model(codegen::compile(graph, driver::cpu_options()).program, 1);
  const std::vector<Datum> actual = model.run(inputs);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t k = 0; k < actual.size(); ++k)
    EXPECT_EQ(testing::exact_difference(actual[k], expected[k]), "") << text;
}

Tensor floats(std::vector<double> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return Tensor::of<double>(DType::F32, {count}, values);
}

TEST(EdgeValues, IntermediateOverflow) {
  const std::string text = R"(graph (x: f32[5]) {
  y = reduce_prod(x) {axes = [0]}
  z = cumprod(x) {axis = 0}
  return y, z
}
)";
  expect_exact(text, {floats({1e-30, 1e-30, 1e30, 1e30, 3})});
  expect_exact(text, {floats({1e-30, 1e-30, 2, -INFINITY, 1})});
}

// Around overflow and underflow of exp, in whole vectors and in scalar remainders. Quotients by it
// may differ by one unit in the last place.
TEST(EdgeValues, ExponentialOverflowAndUnderflow) {
  const std::vector<double> reals = {
      0,    -0.0,   1,      -1,  88.5, 88.72,    88.8,      90,  -86,   -87.5, -88.7, -89.5, -95,
      -103, -103.9, -104.5, 200, -200, INFINITY, -INFINITY, NAN, 1e-30, 5,     -5,    20,    -20};
  for (const char* op : {"exp", "sigmoid", "swish", "tanh"}) {
    for (const std::size_t count : {reals.size(), std::size_t{3}}) {
      const Tensor x = floats({reals.end() - static_cast<std::ptrdiff_t>(count), reals.end()});
      const Graph graph = parse_graph(
          concat("graph (x: f32[", count, "]) {\n  y = ", op, "(x)\n  return y\n}\n"), all_ops());
      const Tensor expected = reference::evaluate(graph, {x}).front().tensor();
      const Tensor made = CompiledModel(codegen::compile(graph, driver::cpu_options()).program, 1)
                              .run({x})
                              .front()
                              .tensor();
      for (std::int64_t k = 0; k < made.size(); ++k) {
        const double is = made.real_at(k), should = expected.real_at(k);
        const bool agrees = is == should || (std::isnan(is) && std::isnan(should)) ||
                            std::abs(is - should) <= 5e-7 * std::abs(should) + 2e-37;
        EXPECT_TRUE(agrees) << op << " of " << x.real_at(k) << ": " << is << ", not " << should;
      }
    }
  }
}

TEST(EdgeValues, RealsBeyondIntegerRange) {
  const std::vector<double> reals = {9.3e18,   -9.3e18,   1.9e19, -1.9e19, NAN,
                                     INFINITY, -INFINITY, -0.7,   300,     -300};
  for (const char* dtype : {"i64", "u64", "i32", "u32", "i16", "u16", "i8", "u8", "bool"}) {
    expect_exact(concat("graph (x: f32[10]) {\n  y = cast(x) {to = ", dtype, "}\n  return y\n}\n"),
                 {floats(reals)});
  }
  expect_exact("graph (x: i64[2]) {\n  y = shrink(x)\n  return y\n}\n",
               {Tensor::of_integers(
                   std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::max(), -5})});
}

// Two loops of one nest along the same axis, the second longer than its operand.
TEST(EdgeValues, LoopsOfDifferentExtents) {
  Tensor x(DType::F64, {2, 3, 4, 3}), w(DType::F64, {2, 4, 3, 3});
  for (std::int64_t k = 0; k < x.size(); ++k) x.set_real(k, static_cast<double>(k));
  for (std::int64_t k = 0; k < w.size(); ++k) w.set_real(k, static_cast<double>(k % 7 - 3));
  expect_exact(R"(graph (x: f64[2, 3, 4, 3], w: f64[2, 4, 3, 3]) {
  y = fused(x, w)
    group = graph (a: f64[2, 3, 4, 3], b: f64[2, 4, 3, 3]) {
      t = transpose(a) {perm = [0, 2, 3, 1]}
      p = pad(t) {pads = [0, 0, 0, 1, 0, 1, 1, 0]}
      s = transpose(p) {perm = [0, 3, 1, 2]}
      c = conv(s, b) {pads = [1, 1, 1, 1]}
      return c
    }
  return y
}
)",
               {x, w});
}

// Statistics with integer results take roots and quotients in floating point.
TEST(EdgeValues, IntegerStatisticsComputeInFloat) {
  for (const char* dtype : {"i64", "i32", "u8"}) {
    expect_exact(concat("graph (x: f32[1, 9], s: f32[9]) {\n  y = rms_norm(x, s) {stash = ", dtype,
                        "}\n  return y\n}\n"),
                 {Tensor::of<double>(DType::F32, {1, 9}, {3, 4, -2, 5, 2, 6, 7, 8, 9}),
                  floats({1, 2, 3, 4, 5, 6, 7, 8, 9})});
  }
}

TEST(EdgeValues, ResizesSymbolicExtentByScale) {
  for (const std::int64_t extent : {2, 5, 9}) {
    for (const char* aspect : {"not_larger", "not_smaller"}) {
      Tensor image(DType::F32, {1, 2, extent, 3});
      for (std::int64_t k = 0; k < image.size(); ++k) image.set_real(k, static_cast<double>(k * k));
      expect_exact(concat("graph (x: f32[1, 2, n, 3]) {\n  y = resize(x) {sizes = [3, 4], axes = "
                          "[2, 3], aspect = ",
                          aspect, "}\n  return y\n}\n"),
                   {image});
    }
  }
}

}  // namespace
}  // namespace tenon::edge_values_test
