#include "base/error.h"
#include "base/text.h"
#include "driver/compile.h"
#include "driver/pipeline.h"
#include "frontends/numpy/npz.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "passes/definition/pass.h"
#include "passes/quantize/equalise.h"
#include "quantize/quantizer.h"
#include "quantize/report.h"
#include "reference/evaluate.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

namespace tenon::quantization_test {
namespace {

Tensor reals(const std::vector<double>& values) {
  return Tensor::of(DType::F32, {static_cast<std::int64_t>(values.size())}, values);
}

TEST(HistogramTest, WidensWithoutLosingCounts) {
  quantize::Histogram histogram;
  histogram.add(reals({0.5, -0.25, 0.75}));
  histogram.add(reals({100, -3}));
  EXPECT_EQ(histogram.count(), 5);
  EXPECT_EQ(histogram.least(), -3);
  EXPECT_EQ(histogram.greatest(), 100);
  std::int64_t total = 0;
  for (const std::int64_t count : histogram.bins()) total += count;
  EXPECT_EQ(total, 5);
  // Counts after widening equal those of a histogram with the final range.
  quantize::Histogram at_once;
  at_once.add(reals({100, -3, 0.5, -0.25, 0.75}));
  EXPECT_EQ(at_once.radius(), histogram.radius());
  EXPECT_EQ(at_once.bins(), histogram.bins());
}

TEST(HistogramTest, TextRoundTrip) {
  quantize::Histogram histogram;
  histogram.add(reals({0.1, 0.2, -7, 3}));
  const quantize::Histogram again = quantize::Histogram::parse(histogram.text());
  EXPECT_EQ(again.text(), histogram.text());
  EXPECT_EQ(again.bins(), histogram.bins());
  EXPECT_THROW(quantize::Histogram::parse("1 2"), Error);
  EXPECT_THROW(quantize::Histogram::parse("0x1p+0 0x0p+0 0x1p+0 5 0:1"), Error);
}

TEST(HistogramTest, RefusesNonFiniteValues) {
  quantize::Histogram histogram;
  EXPECT_EQ(
      error_text([&] {
        histogram.add(reals({1, std::numeric_limits<double>::quiet_NaN()}));
      }),
      "a value to be quantized is not finite\n  expected  numbers\n  got       nan at element 1");
}

// Ten thousand normally distributed values and one outlier.
quantize::Histogram with_outlier() {
  quantize::Histogram histogram;
  std::vector<double> values;
  for (int k = 1; k < 10000; ++k) {
    const double u = k / 10000.0;
    values.push_back(std::log(u / (1 - u)) / 4);
  }
  values.push_back(100);
  histogram.add(reals(values));
  return histogram;
}

TEST(RangesTest, ClipsOutliersByError) {
  const quantize::Histogram histogram = with_outlier();
  EXPECT_EQ(quantize::choose_range(histogram, quantize::RangeRule::MinMax, 256, false).high, 100);
  EXPECT_LT(quantize::choose_range(histogram, quantize::RangeRule::Percentile, 256, false).high, 5);
  const quantize::ValueRange kl =
      quantize::choose_range(histogram, quantize::RangeRule::Kl, 256, false);
  EXPECT_LT(kl.high, 30);
  // One in ten thousand at 100 costs more energy than steps of 0.4: it stays in range.
  EXPECT_GT(quantize::choose_range(histogram, quantize::RangeRule::Mse, 256, false).high, 50);
}

TEST(RangesTest, RepresentsZeroExactly) {
  quantize::Histogram histogram;
  histogram.add(reals({2, 3, 4}));
  const quantize::ValueRange range =
      quantize::choose_range(histogram, quantize::RangeRule::MinMax, 256, false);
  EXPECT_EQ(range.low, 0);
  const quantize::ScaleAndZero made = quantize::scale_of(range, 0, 255, false);
  EXPECT_EQ(made.zero_point, 0);
  EXPECT_FLOAT_EQ(made.scale, 4.0F / 255);
  const quantize::ScaleAndZero symmetric = quantize::scale_of({-2, 1}, -128, 127, true);
  EXPECT_EQ(symmetric.zero_point, 0);
  EXPECT_FLOAT_EQ(symmetric.scale, 2.0F / 127);
}

TEST(RangesTest, RuleNames) {
  for (const char* name : {"min-max", "percentile", "kl", "mse"})
    EXPECT_EQ(name_of(quantize::range_rule(name)), name);
  EXPECT_THROW(quantize::range_rule("minmax"), Error);
}

Graph small_network() {
  return parse_graph(R"(graph net (x: f32[1, 3, 8, 8]) {
    w = constant f32[8, 3, 3, 3] normal(seed = 1, mean = 0, deviation = 0.3)
    b = constant f32[8] normal(seed = 2, mean = 0, deviation = 0.1)
    v = constant f32[8, 4] normal(seed = 3, mean = 0, deviation = 0.3)
    c = conv(x, w, b) {pads = [1, 1, 1, 1]}
    r = relu(c)
    p = reduce_mean(r) {axes = [2, 3], keep_axes = false}
    m = matmul(p, v)
    return m
  })",
                     all_ops());
}

TEST(QuantizerTest, QuantizesContractionsWithSmallErrors) {
  const Graph graph = quantize::ready_to_quantize(small_network());
  const quantize::CalibrationSamples samples(graph, "random:3");
  quantize::QuantizeRequest request;
  request.rule = quantize::RangeRule::MinMax;
  const quantize::QuantizeResult result = quantize::quantize_model(graph, samples, request);
  ASSERT_EQ(result.nodes.size(), 2U);
  for (const quantize::QuantizedNode& node : result.nodes) {
    EXPECT_EQ(node.skipped, "");
    EXPECT_GT(node.signal_db, 25);
  }
  EXPECT_LT(result.output_error, 0.03);
  EXPECT_GT(result.output_error, 0);
  EXPECT_LT(result.bytes_after, result.bytes_before);
  EXPECT_TRUE(passes::is_quantized(result.graph));
  EXPECT_NE(quantize::quantization_report("net", result).find("Signal to noise"),
            std::string::npos);
}

// Values of quantize-dequantize pairs are named after the original value, also when the graph's
// storage grows.
TEST(QuantizerTest, KeepsValueNames) {
  for (int layers = 1; layers <= 6; ++layers) {
    std::string text = "graph (x0: f32[2, 8]) {\n";
    for (int k = 1; k <= layers; ++k)
      text += concat("  w", k, " = constant f32[8, 8] normal(seed = ", k,
                     ", mean = 0, deviation = 0.3)\n  p", k, " = matmul(x", k - 1, ", w", k,
                     ")\n  x", k, " = relu(p", k, ")\n");
    const Graph graph = quantize::ready_to_quantize(
        parse_graph(concat(text, "  return x", layers, "\n}"), all_ops()));
    const quantize::QuantizeResult result =
        quantize::quantize_model(graph, quantize::CalibrationSamples(graph, "random:1"), {});
    for (int k = 0; k < layers; ++k)
      EXPECT_TRUE(result.graph.find(concat("x", k, "_narrow"))) << layers << " layers, x" << k;
  }
}

TEST(QuantizerTest, TargetErrorKeepsFewFloatLayers) {
  const Graph graph = quantize::ready_to_quantize(small_network());
  const quantize::CalibrationSamples samples(graph, "random:2");
  quantize::QuantizeRequest request;
  request.target_error = 1e-7;
  const quantize::QuantizeResult result = quantize::quantize_model(graph, samples, request);
  EXPECT_LE(result.output_error, 1e-7);
  EXPECT_EQ(result.nodes[0].skipped, "left a float for --target-error");
}

TEST(QuantizerTest, WeightsOnly) {
  const Graph graph = quantize::ready_to_quantize(small_network());
  const quantize::CalibrationSamples samples(graph, "random:1");
  quantize::QuantizeRequest request;
  request.scheme = "w4:4";
  const quantize::QuantizeResult result = quantize::quantize_model(graph, samples, request);
  EXPECT_EQ(result.nodes[0].skipped, "weight-only quantization supports matrix products");
  EXPECT_GT(result.nodes[1].signal_db, 15);
  EXPECT_EQ(result.samples, 0U);
}

TEST(QuantizerTest, ResumesInterruptedCalibration) {
  const Graph graph = quantize::ready_to_quantize(small_network());
  const quantize::CalibrationSamples samples(graph, "random:4");
  quantize::QuantizeRequest request;
  request.state_path =
      (std::filesystem::temp_directory_path() / "tenon_quantizer_test.calibration").string();
  std::filesystem::remove(request.state_path);
  std::size_t seen = 0;
  request.on_sample = [&](std::size_t done, std::size_t) { seen = done; };
  request.is_interrupted = [&] { return seen == 2; };
  EXPECT_THROW(quantize::quantize_model(graph, samples, request), Error);
  request.is_interrupted = {};
  const quantize::QuantizeResult resumed = quantize::quantize_model(graph, samples, request);
  EXPECT_EQ(resumed.resumed, 2U);
  EXPECT_FALSE(std::filesystem::exists(request.state_path));
  request.state_path.clear();
  const quantize::QuantizeResult whole = quantize::quantize_model(graph, samples, request);
  EXPECT_EQ(print(resumed.graph), print(whole.graph));
}

TEST(QuantizerTest, RefusesInvalidOptions) {
  const Graph graph = quantize::ready_to_quantize(small_network());
  const quantize::CalibrationSamples samples(graph, "random:1");
  quantize::QuantizeRequest request;
  request.skip = {"cc"};
  EXPECT_EQ(error_text([&] { quantize::quantize_model(graph, samples, request); }),
            "--skip: no contraction is called 'cc'\n  hint      one of c, m");
  request.skip.clear();
  request.scheme = "int9";
  EXPECT_THROW(quantize::quantize_model(graph, samples, request), Error);
  request.scheme = "int8:4";
  EXPECT_THROW(quantize::quantize_model(graph, samples, request), Error);
  EXPECT_THROW(quantize::CalibrationSamples(graph, "random:0"), Error);
  EXPECT_THROW(quantize::CalibrationSamples(graph, "@/no/such/folder"), Error);
  EXPECT_THROW(quantize::ready_to_quantize(quantize::quantize_model(graph, samples, {}).graph),
               Error);
}

// A wrong shape, type or value is reported with the name of the sample.
TEST(QuantizerTest, NamesTheInvalidSample) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("tenon_samples_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const Graph graph = quantize::ready_to_quantize(small_network());
  const auto refusal = [&](const Tensor& x) {
    frontends::numpy::write_npz_file({{"x", x}}, (folder / "first.npz").string());
    const quantize::CalibrationSamples samples(graph, "@" + folder.string());
    return error_text([&] { quantize::quantize_model(graph, samples, {}); });
  };
  for (const Tensor& x : {Tensor(DType::F32, {1, 3, 8, 9}), Tensor(DType::I64, {1, 3, 8, 8})}) {
    const std::string text = refusal(x);
    EXPECT_NE(text.find("'x'"), std::string::npos) << text;
    EXPECT_NE(text.find("sample 1 of 1"), std::string::npos) << text;
    EXPECT_NE(text.find("first.npz"), std::string::npos) << text;
  }
  Tensor x(DType::F32, {1, 3, 8, 8});
  x.set_real(5, std::numeric_limits<double>::quiet_NaN());
  const std::string text = refusal(x);
  EXPECT_NE(text.find("input 'x' is not finite"), std::string::npos) << text;
  EXPECT_NE(text.find("sample 1 of 1"), std::string::npos) << text;
  std::filesystem::remove_all(folder);
}

TEST(EqualiseTest, BalancesChannelsWithoutChangingOutputs) {
  const Graph graph = parse_graph(R"(graph (x: f32[1, 2, 6, 6]) {
    w = constant f32[3, 2, 1, 1] [8, 4, 0.125, 0.25, 1, -1]
    b = constant f32[3] [1, 2, 3]
    v = constant f32[2, 3, 1, 1] [0.5, 2, 1, 0.25, -2, 0.5]
    c = conv(x, w, b)
    r = relu(c)
    p = max_pool(r) {kernel_shape = [2, 2], strides = [2, 2]}
    y = conv(p, v)
    return y
  })",
                                  all_ops());
  const passes::Equalised made = passes::equalise_channels(graph);
  ASSERT_EQ(made.pairs.size(), 1U);
  EXPECT_EQ(made.pairs.front(), (std::pair<std::string, std::string>("c", "y")));
  // Magnitudes 8 and 0.5 meet at 2, 0.25 and 2 at the root of a half.
  const Tensor weights =
      made.graph
          .constant_of(made.graph.node(made.graph.value(made.graph.find("c")).producer).operands[1])
          ->materialise();
  EXPECT_FLOAT_EQ(static_cast<float>(weights.real_at(0)), 2);
  EXPECT_FLOAT_EQ(static_cast<float>(weights.real_at(3)), std::sqrt(0.5F));
  EXPECT_FLOAT_EQ(static_cast<float>(weights.real_at(4)), 1);
  std::vector<double> image;
  for (int k = 0; k < 72; ++k) image.push_back(std::sin(k));
  const Tensor x = Tensor::of(DType::F32, {1, 2, 6, 6}, image);
  const Tensor before = reference::evaluate(graph, {Datum(x)}).front().tensor(),
               after = reference::evaluate(made.graph, {Datum(x)}).front().tensor();
  for (std::int64_t k = 0; k < before.size(); ++k)
    EXPECT_NEAR(before.real_at(k), after.real_at(k), 1e-5);
}

// A second reader prevents rescaling, and so does a clip at 6.
TEST(EqualiseTest, KeepsSharedAndClippedValues) {
  const char* lines[] = {"r = relu(c) y = conv(r, v) z = add(y, r)",
                         "low = constant f32[] 0 six = constant f32[] 6 r = clip(c, low, six) y = "
                         "conv(r, v) z = relu(y)"};
  for (const char* line : lines) {
    const Graph graph = parse_graph(
        std::string("graph (x: f32[1, 2, 3, 3]) { w = constant f32[2, 2, 1, 1] [8, 4, 1, 2] "
                    "v = constant f32[2, 2, 1, 1] [1, 2, 3, 4] c = conv(x, w) ") +
            line + " return z }",
        all_ops());
    EXPECT_EQ(passes::equalise_channels(graph).pairs.size(), 0U) << line;
  }
}

TEST(EqualiseTest, FoldsCorrectionsIntoBiases) {
  Graph graph = quantize::ready_to_quantize(small_network());
  const std::vector<double> amounts(8, 0.5);
  // m does not have a bias
  EXPECT_EQ(passes::change_biases(graph, {{"c", amounts}, {"m", {1, 2, 3, 4}}}), 1U);
  const Graph before = quantize::ready_to_quantize(small_network());
  const auto bias = [](const Graph& of) {
    return of.constant_of(of.node(of.value(of.find("c")).producer).operands[2])->materialise();
  };
  for (std::int64_t k = 0; k < 8; ++k)
    EXPECT_FLOAT_EQ(static_cast<float>(bias(graph).real_at(k)),
                    static_cast<float>(bias(before).real_at(k) + 0.5));
}

// Bias corrections are kept only if they reduce the error of the outputs.
TEST(EqualiseTest, CorrectionNeverIncreasesTheError) {
  const Graph graph = quantize::ready_to_quantize(small_network());
  const quantize::CalibrationSamples samples(graph, "random:3");
  quantize::QuantizeRequest request;
  request.rule = quantize::RangeRule::Percentile;
  quantize::set_field(request, "correct_biases=false");
  const quantize::QuantizeResult plain = quantize::quantize_model(graph, samples, request);
  EXPECT_EQ(plain.corrected, 0U);
  quantize::set_field(request, "correct_biases=true");
  EXPECT_LE(quantize::quantize_model(graph, samples, request).output_error, plain.output_error);
  EXPECT_NE(error_text([&] {
              quantize::set_field(request, "equalize=true");
            }).find("did you mean 'equalise'"),
            std::string::npos);
  EXPECT_THROW(quantize::set_field(request, "equalise=1"), Error);
}

// Matrix-vector products of decoding with int8 weights equal those with widened weights up to the
// order of summation. Scales per group, per column and per tensor; a number of columns that does
// not fill a block.
TEST(NarrowRowTest, Int8MatchesFloats) {
  struct Case {
    const char *dtype, *shape, *attrs;
    bool has_zero;
  };
  const Case cases[] = {{"i4", "[16, 520]", "{axis = 0, block_size = 32}", false},
                        {"u4", "[16, 520]", "{axis = 0, block_size = 32}", true},
                        {"i8", "[520]", "{axis = 1}", true},
                        {"u8", "[]", "", true},
                        {"i8", "[]", "", false}};
  for (const Case& one : cases) {
    const bool is_unsigned = one.dtype[0] == 'u';
    const Graph graph = parse_graph(
        concat("graph (x: f32[1, 512]) { w = constant ", one.dtype,
               "[512, 520] uniform(seed = 1, low = ", is_unsigned ? "0" : "-7",
               ", high = 7) s = constant f32", one.shape,
               " uniform(seed = 2, low = 0.01, high = 0.02) z = constant ", one.dtype, one.shape,
               " splat 3 r = dequantize_linear(w, s", one.has_zero ? ", z" : "", ") ", one.attrs,
               " y = matmul(x, r) return y }"),
        all_ops());
    const Graph made = passes::find_pass("lower-qdq").run(graph, {});
    for (const NodeId id : made.nodes_in_order())
      EXPECT_NE(made.op_name(id), "matmul") << one.dtype;
    std::vector<double> row;
    for (int k = 0; k < 512; ++k) row.push_back(std::cos(k));
    const Tensor x = Tensor::of(DType::F32, {1, 512}, row);
    const Tensor
        expected = reference::evaluate(graph, {Datum(x)}).front().tensor(),
        rewritten = reference::evaluate(made, {Datum(x)}).front().tensor(),
        given = CompiledModel(driver::compile_graph(graph), 2).run({Datum(x)}).front().tensor();
    ASSERT_EQ(expected.shape(), given.shape());
    for (std::int64_t k = 0; k < expected.size(); ++k) {
      ASSERT_NEAR(expected.real_at(k), rewritten.real_at(k), 1e-5) << one.dtype;
      ASSERT_NEAR(expected.real_at(k), given.real_at(k), 1e-4) << one.dtype;
    }
  }
}

// Two int4 weights per byte: all sixteen values, per-group zero points, one scale, a number of
// columns that does not fill a block. The program stores half a byte per weight.
TEST(NarrowRowTest, Int4IsStoredInFourBits) {
  struct Case {
    const char *dtype, *shape, *attrs, *zero;
  };
  const Case cases[] = {
      {"i4", "[32, 1000]", "{axis = 0, block_size = 32}", ""},
      {"u4", "[32, 1000]", "{axis = 0, block_size = 32}", "uniform(seed = 3, low = 0, high = 15)"},
      {"u4", "[32, 1000]", "{axis = 0, block_size = 32}", "splat 8"},
      {"i4", "[1000]", "{axis = 1}", "uniform(seed = 3, low = -8, high = 7)"},
      {"u4", "[]", "", "splat 15"}};
  for (const Case& one : cases) {
    const bool is_unsigned = one.dtype[0] == 'u', has_zero = *one.zero != 0;
    const Graph graph = parse_graph(
        concat("graph (x: f32[1, 1024]) { w = constant ", one.dtype,
               "[1024, 1000] uniform(seed = 1, low = ", is_unsigned ? "0" : "-8",
               ", high = ", is_unsigned ? "15" : "7", ") s = constant f32", one.shape,
               " uniform(seed = 2, low = 0.01, high = 0.02) ",
               has_zero ? concat("z = constant ", one.dtype, one.shape, " ", one.zero) : "",
               " r = dequantize_linear(w, s", has_zero ? ", z" : "", ") ", one.attrs,
               " y = matmul(x, r) return y }"),
        all_ops());
    const Graph made = passes::find_pass("lower-qdq").run(graph, {});
    std::int64_t bytes = 0;
    for (const NodeId id : made.nodes_in_order()) {
      for (const ValueId operand : made.node(id).operands) {
        const Constant* constant = operand ? made.constant_of(operand) : nullptr;
        if (constant && constant->dtype() == DType::I32)
          bytes = std::max(bytes, 4 * constant->size());
      }
    }
    EXPECT_EQ(bytes, 1024 * 1024 / 2) << one.dtype << one.zero;
    std::vector<double> row;
    for (int k = 0; k < 1024; ++k) row.push_back(std::cos(k));
    const Tensor x = Tensor::of(DType::F32, {1, 1024}, row);
    const Tensor
        expected = reference::evaluate(graph, {Datum(x)}).front().tensor(),
        rewritten = reference::evaluate(made, {Datum(x)}).front().tensor(),
        given = CompiledModel(driver::compile_graph(graph), 2).run({Datum(x)}).front().tensor();
    for (std::int64_t k = 0; k < expected.size(); ++k) {
      ASSERT_NEAR(expected.real_at(k), rewritten.real_at(k), 1e-3) << one.dtype << one.zero;
      ASSERT_NEAR(expected.real_at(k), given.real_at(k), 1e-3) << one.dtype << one.zero;
    }
  }
}

// Chained matrix-vector products: each stays a separate kernel.
TEST(NarrowRowTest, ChainedGemmsAreSeparateKernels) {
  const Graph graph = parse_graph(R"(graph (x: f32[1, 1, 512]) {
    w = constant i8[512, 1024] uniform(seed = 1, low = -7, high = 7)
    v = constant i8[1024, 512] uniform(seed = 2, low = -7, high = 7)
    s = constant f32[] 0.01
    a = dequantize_linear(w, s)
    b = dequantize_linear(v, s)
    y = matmul(x, a)
    g = gelu(y)
    z = matmul(g, b)
    o = add(z, x)
    return o
  })",
                                  all_ops());
  const Graph made = driver::run_pipeline(graph, {});
  std::size_t groups = 0;
  for (const NodeId id : made.nodes_in_order()) {
    if (made.node(id).bodies.empty()) continue;
    std::size_t products = 0, sums = 0;
    const Graph& body = made.node(id).bodies.front();
    for (const NodeId inner : body.nodes_in_order()) {
      products += body.op_name(inner) == "dequantize_linear" ? 1 : 0;
      sums += body.op_name(inner) == "reduce_sum" ? 1 : 0;
    }
    EXPECT_EQ(products, sums);
    EXPECT_LE(products, 1U);
    groups += products;
  }
  EXPECT_EQ(groups, 2U);
}

TEST(QuantizerTest, RefusesAnEmptyFolder) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "tenon_no_samples";
  std::filesystem::create_directories(folder);
  const Graph graph = quantize::ready_to_quantize(small_network());
  EXPECT_EQ(
      error_text([&] { quantize::CalibrationSamples(graph, "@" + folder.string()); }),
      "--calibrate: the folder has no samples\n"
      "  expected  @DIR with a folder or .npz file for each sample, or random:N\n  got       " +
          folder.string());
}

}  // namespace
}  // namespace tenon::quantization_test
