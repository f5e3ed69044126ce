#include "base/error.h"
#include "codegen/compile.h"
#include "driver/compile.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "ops/definition/registry.h"
#include "program/verify.h"
#include "reference/evaluate.h"
#include "unit/codegen/same_results.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tenon::compile_test {
namespace {

// Padding of images with symbolic extents: windows, strides and dilations that cross the edges by a
// symbolic amount.
TEST(Compile, PaddingOfSymbolicImages) {
  for (const char* attributes :
       {"pads = [1, 1, 1, 1]", "pads = [1, 2, 0, 1], strides = [2, 2]",
        "pads = [2, 2, 2, 2], dilations = [2, 2]", "pads = [1, 1, 1, 1], strides = [3, 1]"}) {
    const Graph graph = parse_graph(concat(R"(graph (x: f32[1, H, W, 12]@NHWC) {
  w: f32[3, 3, 12, 24]@HWIO = constant f32[3, 3, 12, 24] normal(seed = 1, mean = 0.0, deviation = 0.2)
  y = conv(x, w) {)",
                                           attributes, "}\n  return y\n}\n"),
                                    all_ops());
    const Program program = codegen::compile(graph, driver::cpu_options()).program;
    EXPECT_EQ(program.steps.size(), 2U) << attributes;
    CompiledModel model(program, 2);
    for (const std::int64_t height : {5, 12}) {
      for (const std::int64_t width : {5, 8, 31}) {
        const std::vector<Datum> inputs =
            models::random_inputs(graph, 3, {{"x", {1, height, width, 12}}});
        const Tensor expected = reference::evaluate(graph, inputs).at(0).tensor();
        const Tensor result = model.run(inputs).at(0).tensor();
        ASSERT_EQ(result.shape(), expected.shape()) << attributes;
        EXPECT_LE(largest_difference(result, expected), 1e-5)
            << attributes << height << ", " << width;
      }
    }
  }
}

// Phases with fewer window elements have zeros in the packed weights.
TEST(Compile, TransposedConvolutionStrideNotDividingWindow) {
  for (const char* attributes : {"strides = [2, 2], pads = [1, 1, 1, 1], output_padding = [1, 1]",
                                 "strides = [2, 3]", "strides = [3, 2], pads = [1, 0, 2, 1]"}) {
    for (const int outputs : {1, 20}) {
      const std::string text =
          concat("graph (x: f32[1, 7, 9, 16]@NHWC) {\n  w: f32[3, 3, ", outputs,
                 ", 16]@HWIO = constant f32[3, 3, ", outputs,
                 ", 16] normal(seed = 1, mean = 0.0, deviation = 0.2)\n",
                 "  y = conv_transpose(x, w) {", attributes, "}\n  return y\n}\n");
      expect_same(text);
      const Program program =
          codegen::compile(parse_graph(text, all_ops()), driver::cpu_options()).program;
      const bool has_tiles =
          std::any_of(program.steps.begin(), program.steps.end(), [](const Program::Step& step) {
            return step.candidate.rfind("tiles", 0) == 0 || step.candidate.rfind("dots", 0) == 0;
          });
      EXPECT_TRUE(has_tiles) << text;
    }
  }
}

// Fewer columns than vector lanes, with an epilogue; static and symbolic numbers of rows.
TEST(Compile, GemmsWithFewColumns) {
  for (const int columns : {4, 5, 9, 10, 15}) {
    for (const char* rows : {"19", "N"}) {
      expect_same(concat(
          "graph (x: f32[", rows, ", 40], b: f32[", columns, "]) {\n  w = constant f32[40, ",
          columns,
          "] normal(seed = 1, mean = 0.0, deviation = 0.2)\n  m = matmul(x, w)\n  a = add(m, b)\n",
          "  y = relu(a)\n  return y\n}\n"));
    }
  }
}

TEST(Compile, ConvolutionsWithOddExtentsAndEpilogues) {
  for (const int channels : {4, 5, 16, 17, 24, 40}) {
    expect_same(concat(R"(graph (x: f32[2, 9, 7, 3]@NHWC, r: f32[2, 5, 4, )", channels, R"(]@NHWC) {
  w: f32[3, 3, 3, )",
                       channels, R"(]@HWIO = constant f32[3, 3, 3, )", channels,
                       R"(] normal(seed = 1, mean = 0.0, deviation = 0.2)
  b = constant f32[)",
                       channels, R"(] normal(seed = 2, mean = 0.0, deviation = 0.2)
  y = fused(x, w, b, r)
    group = graph (p: f32[2, 9, 7, 3]@NHWC, q: f32[3, 3, 3, )",
                       channels, R"(]@HWIO, c: f32[)", channels, R"(], s: f32[2, 5, 4, )", channels,
                       R"(]@NHWC) {
      t = conv(p, q) {strides = [2, 2], pads = [1, 1, 1, 1]}
      u = add(t, c)
      v = add(u, s)
      z = relu(v)
      return z
    }
  return y
}
)"));
  }
}

TEST(Compile, ConvolutionsChannelsFirst) {
  expect_same(R"(graph (x: f32[1, 6, 10, 11]) {
  w = constant f32[8, 3, 3, 3] normal(seed = 1, mean = 0.0, deviation = 0.2)
  y = conv(x, w) {groups = 2, pads = [1, 1, 1, 1], dilations = [2, 1]}
  return y
}
)");
}

TEST(Compile, DepthwiseConvolutions) {
  expect_same(R"(graph (x: f32[1, 9, 9, 20]@NHWC) {
  w: f32[3, 3, 1, 20]@HWIO = constant f32[3, 3, 1, 20] normal(seed = 1, mean = 0.0, deviation = 0.2)
  y = conv(x, w) {groups = 20, pads = [1, 1, 1, 1]}
  return y
}
)");
}

TEST(Compile, GemmsWithOddExtents) {
  for (const int rows : {1, 5, 6, 13}) {
    for (const int columns : {1, 3, 16, 37}) {
      expect_same(concat(
          "graph (x: f32[", rows, ", 19]) {\n  w = constant f32[19, ", columns,
          "] normal(seed = 1, mean = 0.0, deviation = 0.3)\n  y = matmul(x, w)\n  return y\n}\n"));
    }
  }
}

TEST(Compile, Attention) {
  const auto attention = [](int heads, int queries, int keys, const std::string& attributes) {
    return concat("graph (q: f32[2, 4, ", queries, ", 12], k: f32[2, ", heads, ", ", keys,
                  ", 12], v: f32[2, ", heads, ", ", keys, ", 20]) {\n  y = attention(q, k, v)",
                  attributes, "\n  return y\n}\n");
  };
  for (const int queries : {1, 7, 8, 21}) {
    for (const int keys : {5, 8, 64, 70}) {
      expect_same(attention(4, queries, keys, ""));
      expect_same(attention(2, queries, keys, " {causal = true, scale = 0.3}"));
    }
  }
}

// The packed order for one factor is wrong for the other.
TEST(Compile, ConstantTimesItself) {
  expect_same(R"(graph (x: f32[4, 4]) {
  w = constant f32[4, 2] normal(seed = 1, mean = 0.0, deviation = 1.0)
  t = transpose(w) {perm = [1, 0]}
  y = fused(w, t, x)
    group = graph (p: f32[4, 2], q: f32[2, 4], r: f32[4, 4]) {
      m = matmul(p, q)
      z = add(m, r)
      return z
    }
  u = einsum(w, w) {equation = "ij,kj->ik"}
  return y, u
}
)");
}

// Reductions of f16 and bf16 get the register tiles and Winograd's algorithm of f32.
TEST(Compile, ReductionsOfNarrowFloats) {
  for (const std::string dtype : {"f16", "bf16"}) {
    const std::string text =
        concat("graph (x: ", dtype, "[1, 40, 24, 40]@NHWC) {\n  w: ", dtype,
               "[3, 3, 40, 48]@HWIO = constant ", dtype,
               "[3, 3, 40, 48] normal(seed = 1, mean = 0.0, deviation = 0.05)\n  v: ", dtype,
               "[1, 1, 48, 24]@HWIO = constant ", dtype,
               "[1, 1, 48, 24] normal(seed = 2, mean = 0.0, deviation = 0.1)\n",
               "  t = conv(x, w) {pads = [1, 1, 1, 1]}\n  y = conv(t, v)\n  return y\n}\n");
    expect_same(text, dtype == "f16" ? 4e-3 : 3e-2);
    const Program program =
        codegen::compile(parse_graph(text, all_ops()), driver::cpu_options()).program;
    const auto uses = [&](const std::string& candidate) {
      return std::any_of(
          program.steps.begin(), program.steps.end(),
          [&](const Program::Step& step) { return step.candidate.starts_with(candidate); });
    };
    EXPECT_TRUE(uses("winograd")) << dtype;
    EXPECT_TRUE(uses("tiles")) << dtype;
  }
}

TEST(Compile, SoftmaxComputesEachExponentialOnce) {
  const Graph graph = parse_graph(
      "graph (x: f32[5, 37]) {\n  y = softmax(x) {axis = 1}\n  return y\n}\n", all_ops());
  const std::string code = codegen::print_code(graph, driver::cpu_options());
  const std::string nest = code.substr(0, code.find("ModuleID"));
  const std::size_t first = nest.find("exp(");
  ASSERT_NE(first, std::string::npos) << nest;
  EXPECT_EQ(nest.find("exp(", first + 1), std::string::npos) << nest;
}

// The scratch of a nest may be larger than all buffers between steps.
TEST(Compile, ArenaWithoutUnusedBuffers) {
  const Program program =
      codegen::compile(
          parse_graph("graph (x: f32[500, 37]) {\n  y = softmax(x) {axis = 1}\n  return y\n}\n",
                      all_ops()),
          driver::cpu_options())
          .program;
  EXPECT_EQ(program.arena_bytes, 0u);
  verify(program);
}

// Each head reads its own columns of the weights.
TEST(Compile, HeadProjections) {
  expect_same(R"(graph (x: f32[1, 64, 96]) {
  w = constant f32[96, 768] normal(seed = 1, mean = 0.0, deviation = 0.1)
  b = constant f32[768] normal(seed = 2, mean = 0.0, deviation = 0.1)
  y = fused(x, w, b)
    group = graph (p: f32[1, 64, 96], q: f32[96, 768], c: f32[768]) {
      m = matmul(p, q)
      a = add(m, c)
      h = reshape(a) {shape = [1, 64, 12, 64]}
      z = transpose(h) {perm = [0, 2, 1, 3]}
      return z
    }
  return y
}
)");
}

// The weights exceed L2: the rows are computed in two halves.
TEST(Compile, WeightsBeyondTheCache) {
  expect_same(R"(graph (x: f32[96, 372]) {
  w = constant f32[372, 356] normal(seed = 1, mean = 0.0, deviation = 0.1)
  y = matmul(x, w)
  return y
}
)",
              2e-5);
  expect_same(R"(graph (x: f32[1, 12, 9, 370]@NHWC) {
  w: f32[1, 1, 370, 358]@HWIO = constant f32[1, 1, 370, 358] normal(seed = 1, mean = 0.0, deviation = 0.1)
  y = conv(x, w)
  return y
}
)",
              2e-5);
}

TEST(Compile, OneProgramForARangeOfExtents) {
  const Graph graph = parse_graph(R"(graph (x: f32[n, 12]) {
  w = constant f32[12, 20] normal(seed = 1, mean = 0.0, deviation = 0.3)
  h = matmul(x, w)
  y = softmax(h) {axis = 0}
  return y
}
)",
                                  all_ops());
  CompiledModel model(codegen::compile(graph, driver::cpu_options()).program, 2);
  for (const std::int64_t n : {1, 2, 5, 6, 7, 40}) {
    const std::vector<Datum> inputs = models::random_inputs(graph, 3, {{"x", {n, 12}}});
    const Tensor expected = reference::evaluate(graph, inputs).front().tensor();
    const Tensor actual = model.run(inputs).front().tensor();
    ASSERT_EQ(actual.shape(), expected.shape());
    EXPECT_LE(largest_difference(actual, expected), 1e-6) << n;
  }
}

TEST(Compile, PaddingWithSymbolicBatch) {
  const Graph graph = parse_graph(R"(graph (x: f32[n, 9, 7, 5]@NHWC) {
  w: f32[3, 3, 5, 40]@HWIO = constant f32[3, 3, 5, 40] normal(seed = 1, mean = 0.0, deviation = 0.3)
  y = conv(x, w) {strides = [2, 1], pads = [1, 2, 0, 1]}
  return y
}
)",
                                  all_ops());
  const Program program = codegen::compile(graph, driver::cpu_options()).program;
  EXPECT_EQ(program.steps.size(), 2u);  // one copy with padding
  for (const std::int64_t n : {1, 2, 5}) {
    const std::vector<Datum> inputs = models::random_inputs(graph, 3, {{"x", {n, 9, 7, 5}}});
    const Tensor expected = reference::evaluate(graph, inputs).front().tensor();
    for (const int threads : {1, 2}) {
      CompiledModel model(program, threads);
      EXPECT_LE(largest_difference(model.run(inputs).front().tensor(), expected), 1e-5) << n;
    }
  }
}

// SwiGLU with joined weights: the loop over the parts' elements lies inside of symbolic loops.
TEST(Compile, SplitProductWithTwoSymbolicAxes) {
  const Graph graph = parse_graph(R"(graph (x: f32[B, S, 8]) {
  w = constant f32[8, 4200] normal(seed = 1, mean = 0.0, deviation = 0.3)
  v = constant f32[2100, 8] normal(seed = 2, mean = 0.0, deviation = 0.02)
  g = matmul(x, w)
  a, b = split(g) {axis = -1, sizes = [2100, 2100]}
  s = sigmoid(a)
  h = mul(a, s)
  m = mul(b, h)
  p = matmul(m, v)
  y = add(p, x)
  return y
}
)",
                                  all_ops());
  const Program program = driver::compile_model(graph, {}).program;
  const std::vector<Datum> inputs = models::random_inputs(graph, 3, {{"x", {2, 5, 8}}});
  CompiledModel model(program, 2);
  EXPECT_LE(largest_difference(model.run(inputs).front().tensor(),
                               reference::evaluate(graph, inputs).front().tensor()),
            1e-5);
}

// Two nests write the parts of the concat.
TEST(Compile, ConcatOfConvolutionWithItself) {
  const Graph graph = parse_graph(R"(graph (x: f32[100, 3, 28, 32]) {
  w = constant f32[24, 3, 1, 1] normal(seed = 1, mean = 0.0, deviation = 0.1)
  c = conv(x, w) {strides = [2, 1]}
  d = concat(c, c) {axis = 1}
  e = slice(d) {starts = [0], ends = [1000], axes = [2], steps = [2]}
  y = relu(e)
  return y
}
)",
                                  all_ops());
  const std::vector<Datum> inputs = models::random_inputs(graph, 3);
  CompiledModel model(driver::compile_model(graph, {}).program, 2);
  EXPECT_LE(largest_difference(model.run(inputs).front().tensor(),
                               reference::evaluate(graph, inputs).front().tensor()),
            1e-5);
}

TEST(Compile, EmptyTensors) {
  expect_same(R"(graph (x: f32[4, 0], e: f32[0], a: f16[1, 1], b: f16[8, 1, 0]) {
  y = softmax(x)
  s = reduce_sum(x) {axes = [1], keep_axes = false}
  m = matmul(a, b)
  c = concat(x, x) {axis = 1}
  v = reshape(e) {shape = [3, 0], allow_zero = true}
  return y, s, m, c, v, e
}
)");
}

// An index that no output depends on is not bounds-checked.
TEST(Compile, SkipsUnusedResults) {
  const Graph graph = parse_graph(R"(graph (x: f32[1, 1, 1, 1], i: i64[1, 1, 1, 1]) {
  y = max_unpool(x, i) {kernel_shape = [1, 1], output_shape = [1, 1, 1, 0]}
  return y
}
)",
                                  all_ops());
  CompiledModel model(codegen::compile(graph, driver::cpu_options()).program, 1);
  const Tensor outside = Tensor::of<std::int64_t>(DType::I64, {1, 1, 1, 1}, {7});
  EXPECT_EQ(model.run({Tensor(DType::F32, {1, 1, 1, 1}), outside}).front().tensor().size(), 0);
}

// 1 / 6e-8 exceeds the range of f16, but not that of the f32 it is computed in.
TEST(Compile, NarrowFloatsAreRoundedOnce) {
  const Graph graph = parse_graph(R"(graph (x: f16[1, 1, 3], y: f16[1, 1, 2], dy: f16[1, 1, 2]) {
  dx = lp_pool_gradient(x, y, dy) {kernel_shape = [2]}
  return dx
}
)",
                                  all_ops());
  const std::vector<Datum> inputs = {Tensor::of<double>(DType::F16, {1, 1, 3}, {0, 1e-3, 1}),
                                     Tensor::of<double>(DType::F16, {1, 1, 2}, {6e-8, 1}),
                                     Tensor::of<double>(DType::F16, {1, 1, 2}, {1, 1})};
  const Tensor expected = reference::evaluate(graph, inputs).front().tensor();
  CompiledModel model(codegen::compile(graph, driver::cpu_options()).program, 1);
  EXPECT_LE(largest_difference(model.run(inputs).front().tensor(), expected), 16);  // of 16,784
}

// Padding around a value in scratch, also of one element.
TEST(Compile, PaddingAroundScratch) {
  expect_same(R"(graph (x: f32[1, 1, 5], dy: f32[1, 1, 5]) {
  dx = lrn_gradient(x, dy) {size = 3, alpha = 0.5}
  return dx
}
)");
}

TEST(Compile, InputsConstantsAndDuplicatesAsOutputs) {
  expect_same(R"(graph (x: f32[3, 4]) {
  c = constant f32[2] [1, 2]
  y = relu(x)
  v = reshape(x) {shape = [2, 6]}
  return x, c, y, y, v
}
)");
}

TEST(Compile, RefusesWrongShapesByName) {
  const Graph graph =
      parse_graph("graph (image: f32[2, 3]) {\n  y = relu(image)\n  return y\n}\n", all_ops());
  CompiledModel model(codegen::compile(graph, driver::cpu_options()).program, 1);
  try {
    model.run({Tensor(DType::F32, {3, 2})});
    FAIL() << "it was let through";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("image"), std::string::npos);
  }
  EXPECT_THROW(model.run({Tensor(DType::F64, {2, 3})}), Error);
  EXPECT_THROW(model.run({}), Error);
}

TEST(Compile, ReportsIndicesOutOfRange) {
  const Graph graph = parse_graph(
      "graph (x: f32[4], i: i64[2]) {\n  y = gather(x, i) {axis = 0}\n  return y\n}\n", all_ops());
  CompiledModel model(codegen::compile(graph, driver::cpu_options()).program, 1);
  const Tensor x(DType::F32, {4});
  EXPECT_NO_THROW(model.run({x, Tensor::of_integers(std::vector<std::int64_t>{3, -4})}));
  EXPECT_THROW(model.run({x, Tensor::of_integers(std::vector<std::int64_t>{0, 4})}), Error);
}

TEST(Compile, ReportsDivisionByZero) {
  for (const char* op : {"div", "mod"}) {
    const Graph graph = parse_graph(
        concat("graph (x: i32[40], d: i32[40]) {\n  y = ", op, "(x, d)\n  return y\n}\n"),
        all_ops());
    CompiledModel model(codegen::compile(graph, driver::cpu_options()).program, 1);
    Tensor x(DType::I32, {40}), d(DType::I32, {40});
    for (std::int64_t k = 0; k < 40; ++k) {
      x.set_integer(k, 7 * k - 100);
      d.set_integer(k, k == 0 ? -1 : k - 50);
    }
    EXPECT_NO_THROW(model.run({x, d}));
    for (const std::int64_t place : {std::int64_t{3}, std::int64_t{39}}) {
      Tensor wrong = d;
      wrong.set_integer(place, 0);
      try {
        model.run({x, wrong});
        FAIL() << op << " at " << place;
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("integer division by zero"), std::string::npos);
      }
    }
  }
}

// Every bit pattern of every narrow float, and numbers at and around the ties between them.
TEST(Compile, NarrowFloatRoundingMatchesTheReference) {
  for (const DType dtype : {DType::F8E4M3FN, DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ,
                            DType::F8E8M0, DType::F4E2M1}) {
    const std::string name = to_string(dtype);
    const Graph widen = parse_graph(
        concat("graph (x: ", name, "[n]) {\n  y = cast(x) {to = f32}\n  return y\n}\n"), all_ops());
    const Program widened = codegen::compile(widen, driver::cpu_options()).program;
    EXPECT_TRUE(widened.is_kernel_only());
    Tensor codes(dtype, {256});
    for (std::size_t k = 0; k < 256; ++k) codes.mutable_bytes()[k] = static_cast<std::byte>(k);
    const Tensor values = CompiledModel(widened, 1).run({codes}).front().tensor();
    EXPECT_TRUE(identical(values, reference::evaluate(widen, {codes}).front().tensor())) << name;
    std::vector<float> numbers = {1e30F,    -1e30F,    1e-30F, 1e-40F, 3e-39F, 9e-39F,
                                  INFINITY, -INFINITY, NAN,    0.0F,   -0.0F};
    for (const float a : values.as<float>()) {
      for (const float b : values.as<float>()) {
        const float middle = a / 2 + b / 2;
        numbers.insert(numbers.end(), {middle, std::nextafter(middle, INFINITY),
                                       std::nextafter(middle, -INFINITY)});
      }
    }
    const Tensor x =
        Tensor::of<float>(DType::F32, {static_cast<std::int64_t>(numbers.size())}, numbers);
    for (const char* saturate : {"true", "false"}) {
      const Graph round = parse_graph(concat("graph (x: f32[n]) {\n  y = cast(x) {to = ", name,
                                             ", saturate = ", saturate, "}\n  return y\n}\n"),
                                      all_ops());
      const Program rounded = codegen::compile(round, driver::cpu_options()).program;
      EXPECT_TRUE(rounded.is_kernel_only());
      const Tensor actual = CompiledModel(rounded, 1).run({x}).front().tensor();
      const Tensor expected = reference::evaluate(round, {x}).front().tensor();
      for (std::size_t k = 0; k < numbers.size(); ++k) {
        ASSERT_EQ(actual.bytes()[k], expected.bytes()[k]) << name << " of " << numbers[k];
      }
    }
  }
}

TEST(Compile, ListsHostSteps) {
  const Graph graph = parse_graph(
      "graph (x: f32[4]) {\n  a = nonzero(x)\n  b = add(a, a)\n  return b\n}\n", all_ops());
  const std::string text = codegen::print_code(graph, driver::cpu_options());
  EXPECT_NE(text.find("step 'nonzero a': operator nonzero\nstep 'add b': k0\n"), std::string::npos)
      << text.substr(0, 400);
}

// Elementary functions stay within two units in the last place of f32; denormal results of exp are
// flushed to zero.
TEST(Compile, FunctionsWithinTwoUlps) {
  for (const char* function : {"exp", "log", "tanh", "erf"}) {
    const Graph graph = parse_graph(
        concat("graph (x: f32[n]) {\n  y = ", function, "(x)\n  return y\n}\n"), all_ops());
    CompiledModel model(codegen::compile(graph, driver::cpu_options()).program, 1);
    Tensor x(DType::F32, {20000});
    for (std::int64_t k = 0; k < x.size(); ++k) {
      const double part = static_cast<double>(k) / static_cast<double>(x.size());
      const double value = std::string(function) == "log"   ? std::exp(part * 160 - 80)
                           : std::string(function) == "exp" ? part * 200 - 110
                                                            : part * 12 - 6;
      x.set_real(k, value);
    }
    const Tensor y = model.run({x}).front().tensor();
    double worst = 0;
    for (std::int64_t k = 0; k < x.size(); ++k) {
      const double at = x.real_at(k);
      const double exact = std::string(function) == "exp"    ? std::exp(at)
                           : std::string(function) == "log"  ? std::log(at)
                           : std::string(function) == "tanh" ? std::tanh(at)
                                                             : std::erf(at);
      const float rounded = static_cast<float>(exact);
      if (!std::isfinite(rounded)) continue;
      if (std::string(function) == "exp" && !std::isnormal(rounded)) {
        ASSERT_EQ(y.real_at(k), 0) << at;
        continue;
      }
      const double ulp = std::max(
          std::abs(static_cast<double>(std::nextafter(rounded, INFINITY)) - rounded), 1e-45);
      worst = std::max(worst, std::abs(y.real_at(k) - exact) / ulp);
    }
    EXPECT_LE(worst, 2.0) << function;
  }
}

}  // namespace
}  // namespace tenon::compile_test
