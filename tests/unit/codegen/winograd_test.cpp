#include "base/error.h"
#include "base/text.h"
#include "driver/compile.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "nests/winograd_weights.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"
#include "tuned_cpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace tenon::winograd_test {
namespace {

struct Case {
  std::int64_t batch, height, width, channels, outputs;
  std::array<std::int64_t, 4> pads{1, 1, 1, 1};
  std::string weights = "HWIO";
  std::array<std::int64_t, 2> dilations{1, 1};

  std::int64_t rows() const { return height + pads[0] + pads[2] - 2 * dilations[0]; }
  std::int64_t columns() const { return width + pads[1] + pads[3] - 2 * dilations[1]; }
  std::string image() const {
    return concat("f32[", batch, ", ", height, ", ", width, ", ", channels, "]@NHWC");
  }
  std::string result() const {
    return concat("f32[", batch, ", ", rows(), ", ", columns(), ", ", outputs, "]@NHWC");
  }
  std::string weight_dims() const {
    return weights == "HWIO" ? concat("f32[3, 3, ", channels, ", ", outputs, "]")
                             : concat("f32[", outputs, ", ", channels, ", 3, 3]");
  }
};

std::string model(const Case& c, const std::string& epilogue) {
  return concat("graph (x: ", c.image(), ", r: ", c.result(), ") {\n  w: ", c.weight_dims(), "@",
                c.weights, " = constant ", c.weight_dims(),
                " normal(seed = 1, mean = 0.0, deviation = 0.1)\n", "  b = constant f32[",
                c.outputs, "] normal(seed = 2, mean = 0.0, deviation = 0.5)\n",
                "  y = fused(x, w, b, r)\n    group = graph (p: ", c.image(),
                ", q: ", c.weight_dims(), "@", c.weights, ", d: f32[", c.outputs,
                "], s: ", c.result(), ") {\n      t = conv(p, q) {pads = [", c.pads[0], ", ",
                c.pads[1], ", ", c.pads[2], ", ", c.pads[3], "], dilations = [", c.dilations[0],
                ", ", c.dilations[1], "]}\n", epilogue, "      return z\n    }\n  return y\n}\n");
}

// The convolution in double precision.
std::vector<double> convolved(const Case& c, const Tensor& x, const Tensor& w) {
  std::vector<double> y(static_cast<std::size_t>(c.batch * c.rows() * c.columns() * c.outputs), 0);
  const auto image = x.as<float>(), weights = w.as<float>();
  for (std::int64_t n = 0; n < c.batch; ++n) {
    for (std::int64_t h = 0; h < c.rows(); ++h) {
      for (std::int64_t v = 0; v < c.columns(); ++v) {
        double* result =
            &y[static_cast<std::size_t>(((n * c.rows() + h) * c.columns() + v) * c.outputs)];
        for (std::int64_t i = 0; i < 3; ++i) {
          for (std::int64_t j = 0; j < 3; ++j) {
            const std::int64_t row = h + i * c.dilations[0] - c.pads[0];
            const std::int64_t column = v + j * c.dilations[1] - c.pads[1];
            if (row < 0 || row >= c.height || column < 0 || column >= c.width) continue;
            const float* from = &image[static_cast<std::size_t>(
                ((n * c.height + row) * c.width + column) * c.channels)];
            for (std::int64_t k = 0; k < c.channels; ++k) {
              const double pixel = from[k];
              const float* weight =
                  weights.data() + (i * 3 + j) * c.channels * c.outputs + k * c.outputs;
              std::int64_t step = 1;
              if (c.weights != "HWIO") {
                weight = weights.data() + (k * 3 + i) * 3 + j;
                step = c.channels * 9;
              }
              for (std::int64_t o = 0; o < c.outputs; ++o, weight += step)
                result[o] += pixel * static_cast<double>(*weight);
            }
          }
        }
      }
    }
  }
  return y;
}

Tensor constant_named(const Graph& graph, const std::string& name) {
  for (NodeId id : graph.nodes_in_order()) {
    const ValueId value = graph.node(id).results.front();
    if (graph.value(value).name == name) return graph.constant_of(value)->materialise();
  }
  throw Error("no such constant").got(name);
}

// Number of Winograd product positions: 16 for F(2,3), 36 for F(4,3), 0 for direct convolution.
std::int64_t kinds_of(const Program& program) {
  for (const Program::Step& step : program.steps) {
    for (const std::uint32_t id : step.buffers) {
      const Program::Buffer& buffer = program.buffers[id];
      if (buffer.place == Program::BufferKind::Constant && buffer.name == "w" &&
          buffer.dims.size() == 4 &&
          (buffer.dims[3].number() == 16 || buffer.dims[3].number() == 32) &&
          (buffer.dims[0].number() == 16 || buffer.dims[0].number() == 36)) {
        return buffer.dims[0].number();
      }
    }
  }
  return 0;
}

struct Checked {
  std::int64_t kinds = 0;
  std::size_t steps = 0;
  double error = 0;  // the largest, as a share of the largest number
};

// Runs on 1, 2, 3 and 7 threads: bitwise equal, and close to double precision.
Checked check(const Case& c, const std::string& epilogue,
              double (*rest)(double y, double b, double r)) {
  const Graph graph = parse_graph(model(c, epilogue), all_ops());
  const std::vector<Datum> inputs = models::random_inputs(graph, 5);
  const std::vector<double> sums = convolved(c, inputs[0].tensor(), constant_named(graph, "w"));
  const Tensor bias = constant_named(graph, "b");
  const Program program = codegen::compile(graph, testing::tuned_cpu()).program;
  Checked run;
  Tensor first;
  for (const int threads : {1, 2, 3, 7}) {
    CompiledModel compiled(program, threads);
    const Tensor y = compiled.run(inputs).at(0).tensor();
    if (threads > 1) {
      EXPECT_TRUE(identical(y, first));
      continue;
    }
    first = y;
    run.kinds = kinds_of(program);
    run.steps = program.steps.size();
    double largest = 0, difference = 0;
    for (std::int64_t k = 0; k < y.size(); ++k) {
      const double exact = rest(sums[static_cast<std::size_t>(k)], bias.real_at(k % c.outputs),
                                inputs[1].tensor().real_at(k));
      largest = std::max(largest, std::abs(exact));
      difference = std::max(difference, std::abs(y.real_at(k) - exact));
    }
    run.error = difference / largest;
  }
  return run;
}

double biased(double y, double b, double) { return std::max(y + b, 0.0); }
double residual(double y, double b, double r) { return std::max(y + b + r, 0.0); }

TEST(Winograd, ExtentsPadsAndChannels) {
  std::set<std::int64_t> kinds;
  std::set<std::size_t> steps;
  for (const Case& c : {
           Case{1, 24, 24, 32, 32},
           Case{1, 23, 21, 33, 70},
           Case{1, 25, 18, 70, 33, {0, 0, 0, 0}},
           Case{1, 22, 27, 40, 64, {0, 1, 2, 3}},
           Case{2, 19, 21, 36, 47, {2, 0, 1, 1}, "OIHW"},
           Case{3, 33, 34, 32, 35},
           Case{2, 41, 47, 33, 48, {1, 2, 0, 2}},
           Case{1, 14, 13, 48, 48},
           Case{1, 13, 14, 64, 40, {1, 0, 1, 2}, "OIHW"},
           Case{1, 6, 6, 128, 128},
       }) {
    SCOPED_TRACE(
        concat(c.batch, " of ", c.height, " x ", c.width, ", ", c.channels, " to ", c.outputs));
    const Checked run =
        check(c, "      z = add(t, t)\n", [](double y, double, double) { return y + y; });
    EXPECT_LT(run.error, 1e-5);
    kinds.insert(run.kinds);
    if (run.kinds != 0) steps.insert(run.steps);
  }
  // Both tile sizes; tiles in blocks and all at once.
  EXPECT_EQ(kinds, (std::set<std::int64_t>{16, 36}));
  EXPECT_EQ(steps, (std::set<std::size_t>{1, 3}));
}

// A hundred tiles or more have a separate path for interior tiles: here none is interior, or all
// are, or it depends on one axis alone.
TEST(Winograd, OneTilePerRowOrColumn) {
  for (const Case& c : {
           Case{100, 4, 4, 32, 32},
           Case{100, 3, 4, 48, 32},
           Case{101, 6, 6, 32, 32, {0, 0, 0, 0}},
           Case{1, 4, 403, 32, 32},
           Case{1, 403, 4, 32, 32},
           Case{1, 403, 6, 32, 32, {1, 0, 1, 0}},
           Case{1, 403, 6, 32, 32, {0, 0, 0, 0}},
       }) {
    SCOPED_TRACE(concat(c.batch, " of ", c.height, " x ", c.width));
    const Checked run =
        check(c, "      z = add(t, t)\n", [](double y, double, double) { return y + y; });
    EXPECT_LT(run.error, 1e-5);
    EXPECT_GT(run.kinds, 0);
  }
}

// Dilated convolution: the pixels of one phase form an image; phases differ in size and may be
// empty.
TEST(Winograd, DilatedWindows) {
  std::set<std::int64_t> kinds;
  for (const Case& c : {
           Case{1, 32, 32, 32, 32, {2, 2, 2, 2}, "HWIO", {2, 2}},
           Case{2, 33, 31, 33, 40, {3, 4, 3, 4}, "OIHW", {3, 4}},
           Case{1, 30, 29, 40, 64, {0, 0, 0, 0}, "HWIO", {1, 5}},
           Case{1, 32, 32, 64, 48, {18, 18, 18, 18}, "HWIO", {18, 18}},
           Case{1, 21, 40, 48, 48, {1, 6, 0, 5}, "HWIO", {9, 6}},
           Case{3, 44, 45, 64, 64, {4, 4, 4, 4}, "OIHW", {4, 4}},
       }) {
    SCOPED_TRACE(concat(c.height, " x ", c.width, " by ", c.dilations[0], ", ", c.dilations[1]));
    const Checked run =
        check(c, "      u = add(t, d)\n      v = add(u, s)\n      z = relu(v)\n", residual);
    EXPECT_LT(run.error, 1e-5);
    kinds.insert(run.kinds);
  }
  EXPECT_TRUE(kinds.contains(16) && kinds.contains(36));
}

TEST(Winograd, Epilogues) {
  for (const Case& c : {Case{1, 22, 23, 32, 50}, Case{2, 45, 46, 33, 40}}) {
    const Checked bias = check(c, "      u = add(t, d)\n      z = relu(u)\n", biased);
    EXPECT_EQ(bias.kinds, 36);
    EXPECT_LT(bias.error, 1e-5);
    const Checked add =
        check(c, "      u = add(t, d)\n      v = add(u, s)\n      z = relu(v)\n", residual);
    EXPECT_EQ(add.kinds, 36);
    EXPECT_LT(add.error, 1e-5);
  }
}

// Border tiles cover more pixels than the output's windows. Reading them would access the next
// image.
TEST(Winograd, ReadsOnlyPixelsOfWindows) {
  for (const std::int64_t size : {23, 57}) {
    const Case c{2, size, size, 32, 32, {0, 0, 0, 0}};
    const Graph graph = parse_graph(model(c, "      z = relu(t)\n"), all_ops());
    std::vector<Datum> inputs = models::random_inputs(graph, 5);
    Tensor x = inputs[0].tensor();
    const auto pixels = x.as_mutable<float>();
    std::fill(pixels.begin() + x.size() / 2, pixels.end(), NAN);
    inputs[0] = Datum(x);
    const Program program = codegen::compile(graph, testing::tuned_cpu()).program;
    EXPECT_EQ(kinds_of(program), 36);
    const Tensor y = CompiledModel(program, 1).run(inputs).at(0).tensor();
    for (std::int64_t k = 0; k < y.size() / 2; ++k) ASSERT_TRUE(std::isfinite(y.real_at(k))) << k;
  }
}

// The number of tiles is computed at run time; the last ones cross the edges by varying amounts.
TEST(Winograd, ImagesOfSymbolicExtents) {
  for (const char* attributes :
       {"pads = [1, 1, 1, 1]", "", "pads = [2, 2, 2, 2], dilations = [2, 2]"}) {
    const Graph graph = parse_graph(concat(R"(graph (x: f32[b, h, w, 48]@NHWC) {
  k: f32[3, 3, 48, 40]@HWIO = constant f32[3, 3, 48, 40] normal(seed = 1, mean = 0.0, deviation = 0.1)
  y = conv(x, k) {)",
                                           attributes, "}\n  return y\n}\n"),
                                    all_ops());
    const Program program = codegen::compile(graph, testing::tuned_cpu()).program;
    ASSERT_EQ(program.steps.front().candidate.rfind("winograd", 0), 0U)
        << program.steps.front().candidate;
    CompiledModel model(program, 2);
    for (const std::array<std::int64_t, 3>& extents :
         {std::array<std::int64_t, 3>{1, 5, 5}, {2, 8, 17}, {1, 31, 6}, {3, 12, 12}, {1, 40, 41}}) {
      const std::vector<Datum> inputs =
          models::random_inputs(graph, 3, {{"x", {extents[0], extents[1], extents[2], 48}}});
      const Tensor expected = reference::evaluate(graph, inputs).at(0).tensor();
      const Tensor result = model.run(inputs).at(0).tensor();
      ASSERT_EQ(result.shape(), expected.shape());
      for (std::int64_t k = 0; k < result.size(); ++k) {
        ASSERT_NEAR(result.real_at(k), expected.real_at(k), 2e-4) << attributes << " " << k;
      }
    }
  }
}

TEST(Winograd, TwoResultsOfOneGroup) {
  const Graph graph = parse_graph(R"(graph (x: f32[1, 30, 30, 32]@NHWC) {
  w: f32[3, 3, 32, 32]@HWIO = constant f32[3, 3, 32, 32] normal(seed = 1, mean = 0.0, deviation = 0.1)
  y, z = fused(x, w)
    group = graph (p: f32[1, 30, 30, 32]@NHWC, q: f32[3, 3, 32, 32]@HWIO) {
      t = conv(p, q) {pads = [1, 1, 1, 1]}
      u = relu(t)
      return t, u
    }
  return y, z
}
)",
                                  all_ops());
  const Program program = codegen::compile(graph, testing::tuned_cpu()).program;
  EXPECT_EQ(kinds_of(program), 36);
  CompiledModel compiled(program, 1);
  const std::vector<Datum> outputs = compiled.run(models::random_inputs(graph, 5));
  const Tensor y = outputs.at(0).tensor(), z = outputs.at(1).tensor();
  for (std::int64_t k = 0; k < y.size(); ++k) ASSERT_EQ(z.real_at(k), std::max(y.real_at(k), 0.0));
}

// One program for any batch, bitwise equal to single images; tiles in blocks and all at once.
TEST(Winograd, SymbolicBatch) {
  std::set<std::size_t> steps;
  for (const std::int64_t size : {14, 57}) {
    const Graph graph = parse_graph(concat("graph (x: f32[n, ", size, ", ", size, R"(, 32]@NHWC) {
  w: f32[3, 3, 32, 48]@HWIO = constant f32[3, 3, 32, 48] normal(seed = 1, mean = 0.0, deviation = 0.1)
  y = conv(x, w) {pads = [1, 1, 1, 1]}
  return y
}
)"),
                                    all_ops());
    const Program program = codegen::compile(graph, testing::tuned_cpu()).program;
    EXPECT_NE(kinds_of(program), 0);
    steps.insert(program.steps.size());
    CompiledModel all(program, 2), one(program, 1);
    for (const std::int64_t count : {1, 2, 5}) {
      const std::vector<Datum> inputs =
          models::random_inputs(graph, 3, {{"x", {count, size, size, 32}}});
      const Tensor y = all.run(inputs).at(0).tensor(), x = inputs[0].tensor();
      for (std::int64_t k = 0; k < count; ++k) {
        Tensor image(DType::F32, {1, size, size, 32});
        const std::int64_t pixels = image.size(), results = y.size() / count;
        std::copy_n(x.as<float>().begin() + k * pixels, pixels, image.as_mutable<float>().begin());
        const Tensor alone = one.run({Datum(image)}).at(0).tensor();
        ASSERT_EQ(alone.size(), results);
        EXPECT_TRUE(std::equal(alone.as<float>().begin(), alone.as<float>().end(),
                               y.as<float>().begin() + k * results));
      }
    }
  }
  EXPECT_EQ(steps, (std::set<std::size_t>{1, 3}));
}

// The documented bound is 1e-4; the measured error is well below.
TEST(Winograd, ErrorOfManyChannels) {
  const Checked run = check({1, 20, 20, 512, 64}, "      z = add(t, t)\n",
                            [](double y, double, double) { return y + y; });
  EXPECT_EQ(run.kinds, 36);
  EXPECT_LT(run.error, 5e-5);
}

// Layers as in networks: images after an activation, weights scaled for constant variance. Each
// result differs by at most 1e-4 of itself, or of the typical magnitude if it is near zero.
TEST(Winograd, LayersOfNetworksWithin1e4) {
  std::set<std::int64_t> kinds;
  for (const Case& c :
       {Case{1, 28, 56, 64, 64}, Case{1, 28, 28, 128, 64}, Case{1, 14, 14, 256, 128},
        Case{1, 14, 14, 512, 64, {1, 1, 1, 1}, "OIHW"}, Case{2, 7, 7, 512, 128},
        Case{1, 7, 7, 512, 256}, Case{1, 64, 48, 32, 32, {0, 0, 0, 0}}}) {
    SCOPED_TRACE(concat(c.height, " x ", c.width, ", ", c.channels, " to ", c.outputs));
    const double deviation = std::sqrt(2.0 / static_cast<double>(9 * c.channels));
    const Graph graph =
        parse_graph(concat("graph (x: ", c.image(), ") {\n  w: ", c.weight_dims(), "@", c.weights,
                           " = constant ", c.weight_dims(),
                           " normal(seed = 3, mean = 0.0, deviation = ", format_real(deviation),
                           ")\n  y = conv(x, w) {pads = [", c.pads[0], ", ", c.pads[1], ", ",
                           c.pads[2], ", ", c.pads[3], "]}\n  return y\n}\n"),
                    all_ops());
    std::vector<Datum> inputs = models::random_inputs(graph, 7);
    Tensor x = inputs[0].tensor();
    for (float& pixel : x.as_mutable<float>()) pixel = std::max(pixel, 0.0f);
    inputs[0] = Datum(x);
    const std::vector<double> exact = convolved(c, x, constant_named(graph, "w"));
    const Program program = codegen::compile(graph, testing::tuned_cpu()).program;
    kinds.insert(kinds_of(program));
    const Tensor y = CompiledModel(program, 2).run(inputs).at(0).tensor();
    double squares = 0;
    for (const double value : exact) squares += value * value;
    const double usual = std::sqrt(squares / static_cast<double>(exact.size()));
    double worst = 0;
    for (std::int64_t k = 0; k < y.size(); ++k) {
      const double value = exact[static_cast<std::size_t>(k)];
      worst = std::max(worst, std::abs(y.real_at(k) - value) / std::max(std::abs(value), usual));
    }
    EXPECT_LT(worst, 1e-4);
  }
  EXPECT_EQ(kinds, (std::set<std::int64_t>{16, 36}));
}

TEST(Winograd, SelectionByApplicabilityAndCost) {
  const auto kinds = [](const std::string& text, bool is_allowed) {
    codegen::CompileOptions options = testing::tuned_cpu();
    options.allow_winograd = is_allowed;
    return kinds_of(codegen::compile(parse_graph(text, all_ops()), options).program);
  };
  const std::string text = model({1, 28, 28, 64, 64}, "      z = relu(t)\n");
  EXPECT_EQ(kinds(text, true), 36);
  EXPECT_EQ(kinds(text, false), 0);
  EXPECT_EQ(kinds(model({1, 28, 28, 8, 64}, "      z = relu(t)\n"), true), 0);  // few channels
  EXPECT_EQ(kinds(model({1, 3, 3, 512, 512}, "      z = relu(t)\n"), true),
            0);  // bound by its weights
  const auto conv = [](const std::string& attributes, const std::string& image = "1, 32, 32, 64") {
    return concat("graph (x: f32[", image,
                  "]@NHWC) {\n  w: f32[3, 3, 64, 64]@HWIO = constant f32[3, 3, 64, 64] ",
                  "normal(seed = 1, mean = 0.0, deviation = 0.1)\n  y = conv(x, w) {", attributes,
                  "}\n  return y\n}\n");
  };
  EXPECT_EQ(kinds(conv("pads = [1, 1, 1, 1]"), true), 36);
  EXPECT_EQ(kinds(conv("", "n, 32, 32, 64"), true), 36);
  EXPECT_EQ(kinds(conv("", "1, n, 32, 64"), true), 36);
  EXPECT_EQ(kinds(conv("strides = [2, 2]"), true), 0);
  EXPECT_EQ(kinds(conv("strides = [1, 2]"), true), 0);
  EXPECT_EQ(kinds(conv("dilations = [2, 2]"), true), 36);
  EXPECT_EQ(kinds(conv("groups = 2", "1, 32, 32, 128"), true), 0);
}

}  // namespace
}  // namespace tenon::winograd_test
