#include "base/error.h"
#include "base/text.h"
#include "documents/document.h"
#include "documents/native_node.h"
#include "driver/compile.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "passes/compat/relay/fixed_point.h"
#include "passes/compat/relay/stages.h"
#include "quantize/relay_pipeline.h"
#include "quantize/relay_thresholds.h"
#include "reference/evaluate.h"
#include "unit/documents/mutation.h"
#include "unit/error_text.h"
#include "unit/quantize/relay_interpreter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <set>

namespace tenon::relay_quantization_test {
namespace {

using passes::relay_quantize::fixed_point_of;
using passes::relay_quantize::set_field;

Graph read_relay(const std::string& text) {
  return documents::find_document_format("relay")->read(text, "test")->graph();
}
// Prints the graph as Relay text, which omits the elements of constants.
std::string as_relay(const Graph& graph) {
  return documents::find_document_format("relay")->put_down(graph, {})->text("");
}

std::map<std::string, int> counts_of(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const NodeId id : graph.nodes_in_order()) ++counts[std::string(graph.op_name(id))];
  return counts;
}

quantize::RelayQuantizeRequest request_for(const std::vector<std::string>& settings,
                                           std::string stop_after = "") {
  quantize::RelayQuantizeRequest request;
  for (const std::string& setting : settings) set_field(request.config, setting);
  request.stop_after = std::move(stop_after);
  return request;
}

// Both rounding modes on the numbers of the specification.
TEST(RelayQuantize, FixedPointTable) {
  const std::vector<std::int64_t> x = {-1000001, -255, -7, -5, -3, -2,  -1,     0,
                                       1,        2,    3,  5,  7,  255, 1000001};
  struct Row {
    double factor;
    std::int64_t multiplier, shift;
    std::vector<std::int64_t> upward, to_nearest;
  };
  const std::vector<Row> rows = {
      {0.75,
       1610612736,
       0,
       {-750001, -191, -5, -4, -2, -1, -1, 0, 1, 2, 2, 4, 5, 191, 750001},
       {-750001, -191, -5, -4, -2, -2, -1, 0, 1, 2, 2, 4, 5, 191, 750001}},
      {0.3, 1288490240, -1, {-300000, -77, -2, -2, -1, -1, 0, 0, 0, 1, 1, 2, 2, 77, 300000}, {}},
      {1.0 / 3,
       1431655808,
       -1,
       {-333334, -85, -2, -2, -1, -1, 0, 0, 0, 1, 1, 2, 2, 85, 333334},
       {}},
      {0.0123456789, 1696777216, -6, {-12346, -3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 12346}, {}},
      {1.7,
       1825361152,
       1,
       {-1700002, -434, -12, -9, -5, -3, -2, 0, 2, 3, 5, 9, 12, 434, 1700002},
       {}},
      {5.5,
       1476395008,
       3,
       {-5500005, -1402, -38, -27, -16, -11, -5, 0, 6, 11, 17, 28, 39, 1403, 5500006},
       {-5500006, -1403, -39, -28, -17, -11, -6, 0, 6, 11, 17, 28, 39, 1403, 5500006}}};
  for (const Row& row : rows) {
    const auto factor = double{static_cast<float>(row.factor)};
    const passes::relay_quantize::FixedPoint made = fixed_point_of(factor);
    EXPECT_EQ(made.multiplier, row.multiplier);
    EXPECT_EQ(made.shift, row.shift);
    Graph graph = parse_graph(
        concat("graph (x: i32[15]) { y = fixed_point_multiply(x) {multiplier = ", made.multiplier,
               ", shift = ", made.shift, "} return y }"),
        all_ops());
    const auto given = Tensor::of(DType::I32, {15}, x);
    EXPECT_EQ(reference::evaluate(graph, {Datum(given)}).front().tensor().integers(), row.upward);
    const std::vector<std::int64_t>& nearest = row.to_nearest.empty() ? row.upward : row.to_nearest;
    for (std::size_t k = 0; k < x.size(); ++k) {
      EXPECT_EQ(RelayInterpreter::multiplied(x[k], factor, false), row.upward[k]);
      EXPECT_EQ(RelayInterpreter::multiplied(x[k], factor, true), nearest[k]);
    }
  }
  EXPECT_EQ(fixed_point_of(0).multiplier, 0);
  // Rounds up to one, which must become a half of the next power.
  EXPECT_EQ(fixed_point_of(1 - 1e-12).multiplier, std::int64_t{1} << 30);
  EXPECT_EQ(fixed_point_of(1 - 1e-12).shift, 1);
}

TEST(RelayQuantize, KlExampleOfTheSpecification) {
  std::vector<std::int64_t> bins;
  std::vector<float> edges;
  std::int64_t total = 0;
  for (int bin = 0; bin < 401; ++bin) {
    const double x = bin - 200;
    bins.push_back(static_cast<std::int64_t>(std::floor(1000 * std::exp(-(x / 30) * (x / 30)))) +
                   (std::abs(x) == 190 ? 3 : 0));
    total += bins.back();
  }
  for (int edge = 0; edge <= 401; ++edge)
    edges.push_back(static_cast<float>(-1 + 2.0 * edge / 401));
  EXPECT_EQ(total, 53092);
  const quantize::KlChoice choice = quantize::kl_threshold(bins, edges, 31);
  EXPECT_FLOAT_EQ(choice.threshold, 0.39650872F);
  EXPECT_EQ(choice.candidate, 64U);
  EXPECT_NEAR(choice.divergence, 0.0022659, 2e-6);
}

TEST(RelayQuantize, PercentileMatchesASortedList) {
  std::vector<float> values(400000);
  for (std::size_t k = 0; k < values.size(); ++k)
    values[k] = static_cast<float>((k * 7919) % values.size()) * (k % 2 == 0 ? 1.0F : -1.0F);
  quantize::PercentileObserver observer(static_cast<std::int64_t>(values.size()));
  observer.count(std::span(values).first(1000));
  observer.count(std::span(values).subspan(1000));
  std::vector<float> sizes;
  for (const float value : values) sizes.push_back(std::abs(value));
  std::ranges::sort(sizes);
  EXPECT_EQ(observer.threshold(), sizes[static_cast<std::size_t>(400000 * 0.99999)]);
}

// Draws part of a large seeded constant and repeats it: drawing all would take longer than the rest
// of a test.
Tensor drawn_in_part(const Constant& constant) {
  constexpr std::int64_t kDrawn = 8191;  // prime: does not divide any extent
  if (constant.kind() != Constant::Kind::Normal || constant.size() <= kDrawn)
    return constant.materialise();
  const Tensor some =
      Constant::normal(DType::F32, {kDrawn}, constant.seed(), constant.first(), constant.second())
          .materialise();
  Tensor all(DType::F32, constant.shape());
  const std::span<float> elements = all.as_mutable<float>();
  const std::span<const float> numbers = some.as<float>();
  for (std::size_t at = 0; at < elements.size(); at += numbers.size()) {
    const std::size_t count = std::min(numbers.size(), elements.size() - at);
    std::copy_n(numbers.begin(), count, elements.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return all;
}

// Materializes seeded constants once for all readers.
Graph with_drawn_constants(Graph graph) {
  for (const NodeId id : graph.nodes_in_order()) {
    const Constant* drawn = graph.constant_of(graph.node(id).results.front());
    if (drawn != nullptr) graph.set_attribute(id, "value", Constant(drawn_in_part(*drawn)));
  }
  return graph;
}

struct Counts {
  bool is_legacy;
  std::size_t inputs, parameters;
  int clips;
};

class RelayQuantizeCounts : public ::testing::TestWithParam<Counts> {};

// The specification's network: number of nodes after each stage.
TEST_P(RelayQuantizeCounts, MatchTheSpecification) {
  const Counts& expected = GetParam();
  quantize::RelayQuantizeRequest request =
      request_for({concat("legacy_add=", expected.is_legacy ? "true" : "false")});
  std::map<std::string, Graph> stages;
  request.on_stage = [&](std::string_view stage, const Graph& after) {
    stages.emplace(std::string(stage), after);
  };
  const Graph network = with_drawn_constants(read_relay(read_fixture("resnet50_v1.before.relay")));
  const quantize::RelayQuantizeResult result =
      quantize::relay_quantize_model(network, nullptr, request);
  EXPECT_EQ(as_relay(stages.at("prepare")), read_fixture("resnet50_v1.before.relay"));
  EXPECT_EQ(as_relay(stages.at("partition")), read_fixture("resnet50_v1.after.relay"));
  EXPECT_EQ(result.input_quantizers, expected.inputs);
  EXPECT_EQ(result.weight_quantizers, 106U);
  EXPECT_EQ(stages.at("annotate").inputs().size(), expected.parameters);
  EXPECT_EQ(stages.at("calibrate").inputs().size(), 1U);

  passes::relay_quantize::Config config = request.config;
  EXPECT_EQ(
      counts_of(passes::relay_quantize::realize(stages.at("calibrate"), config))["shift_left"], 53);
  std::map<std::string, int> counts = counts_of(result.graph);
  const std::map<std::string, int> of_spec = {{"conv", 54},
                                              {"cast", 124},
                                              {"clip", expected.clips},
                                              {"shift_right", 53},
                                              {"add", 123},
                                              {"stop_fusion", 86},
                                              {"relu", 49},
                                              {"max_pool", 4},
                                              {"mul", 5},
                                              {"round", 3},
                                              {"pad", 1},
                                              {"reduce_mean", 1},
                                              {"shift_left", 0},
                                              {"simulated_quantize", 0},
                                              {"cast_hint", 0}};
  for (const auto& [op, count] : of_spec) EXPECT_EQ(counts[op], count) << op;

  // The text of every stage is valid Relay and round-trips.
  for (const auto& [stage, graph] : stages) {
    const std::string text = as_relay(graph);
    EXPECT_EQ(as_relay(read_relay(text)), text) << stage;
  }
  const std::string annotated = as_relay(stages.at("annotate"));
  EXPECT_NE(
      annotated.find(
          "%dom_scale: float32, %clip_min: float32, %clip_max: float32, %dom_scale1: float32"),
      std::string::npos);
  EXPECT_NE(annotated.find("relay.op.annotation.simulated_quantize("), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Spec, RelayQuantizeCounts,
                         ::testing::Values(Counts{false, 72, 535, 72}, Counts{true, 71, 532, 71}),
                         [](const auto& instance) {
                           return std::string(instance.param.is_legacy ? "LegacyAdd" : "AddFixed");
                         });

// The specification's network on one image of 32 x 32.
Graph small_resnet() {
  std::string text = read_fixture("resnet50_v1.before.relay");
  text = std::regex_replace(text, std::regex(R"( /\* ty=Tensor\[\(32, [0-9, ]*\), float32\] \*/)"),
                            "");
  text =
      std::regex_replace(text, std::regex(R"(\) -> Tensor\[\(32, 1, 1, 1000\), float32\])"), ")");
  text = std::regex_replace(text, std::regex(R"(\(32, 224, 224, 3\))"), "(1, 32, 32, 3)");
  Graph graph = with_drawn_constants(read_relay(text));
  // Makes float sums exact: the first convolution's numbers are multiples of a power of two.
  for (const NodeId id : graph.nodes_in_order()) {
    if (graph.op_name(id) != "conv") continue;
    const ValueId bias =
        graph.node(graph.readers(graph.node(id).results.front()).front()).operands[1];
    for (const ValueId value : {graph.node(id).operands[1], bias}) {
      Tensor tensor = graph.constant_of(value)->materialise();
      for (float& element : tensor.as_mutable<float>())
        element = std::nearbyint(element * 256) / 256;
      graph.set_attribute(graph.value(value).producer, "value", Constant(tensor));
    }
    break;
  }
  return graph;
}

std::vector<float> image_of(const Graph& graph) {
  std::vector<float> image;
  std::uint32_t state = 12345;
  const Dims& dims = graph.value(graph.inputs().front()).type.tensor().dims;
  const std::int64_t size = product(dims).constant();
  for (std::int64_t k = 0; k < size; ++k) {
    state = state * 1664525 + 1013904223;
    image.push_back(static_cast<float>(state >> 26) / 16 - 2);
  }
  return image;
}

struct EndToEnd {
  const char* name;
  bool looks_inside;
  std::vector<std::string> settings;
  RelayInterpreter::Options options;
};

class RelayQuantizeEndToEnd : public ::testing::TestWithParam<EndToEnd> {};

// The compiled integers equal those of the independent interpreter: the outputs and, for some
// settings, every intermediate value.
TEST_P(RelayQuantizeEndToEnd, MatchesTheInterpreter) {
  const Graph graph = small_resnet();
  const Graph quantized =
      quantize::relay_quantize_model(graph, nullptr, request_for(GetParam().settings)).graph;
  const std::vector<float> image = image_of(graph);
  RelayInterpreter interpreter(graph, GetParam().options);
  const std::vector<float> expected = interpreter.run(image);
  EXPECT_GT(std::set<float>(expected.begin(), expected.end()).size(), 20U) << "too dull to compare";

  const Tensor input = Tensor::of(DType::F32, {1, 32, 32, 3}, image);
  CompiledModel model(driver::compile_graph(quantized), 2);
  const std::span<const float> given = model.run({Datum(input)}).front().tensor().as<float>();
  EXPECT_EQ(std::vector<float>(given.begin(), given.end()), expected);

  if (!GetParam().looks_inside) return;
  Graph open = quantized;
  std::vector<ValueId> outputs;
  for (const NodeId id : graph.nodes_in_order()) {
    const std::string& name = graph.value(graph.node(id).results.front()).name;
    const bool is_inside = !graph.is_output(graph.node(id).results.front());
    if (is_inside && !interpreter.steps(name).empty() && open.find(name))
      outputs.push_back(open.find(name));
  }
  ASSERT_GT(outputs.size(), 150U);
  open.set_outputs(outputs);
  const std::vector<Datum> values =
      CompiledModel(driver::compile_graph(open), 2).run({Datum(input)});
  for (std::size_t k = 0; k < values.size(); ++k) {
    const std::string& name = open.value(outputs[k]).name;
    ASSERT_EQ(values[k].tensor().integers(), interpreter.steps(name)) << name;
  }
}

RelayInterpreter::Options options_for(auto change) {
  RelayInterpreter::Options options;
  change(options);
  return options;
}

INSTANTIATE_TEST_SUITE_P(
    Spec, RelayQuantizeEndToEnd,
    ::testing::Values(EndToEnd{"Defaults", true, {}, {}},
                      EndToEnd{"AllConvolutions",
                               false,
                               {"skip_conv_layers=none"},
                               options_for([](auto& options) { options.skipped = {}; })},
                      EndToEnd{
                          "LegacyAdd", false, {"legacy_add=true"}, options_for([](auto& options) {
                            options.has_legacy_add = true;
                          })},
                      EndToEnd{"FractionsUpward",
                               false,
                               {"weight_scale=max", "global_scale=7"},
                               options_for([](auto& options) {
                                 options.takes_largest_weight = true;
                                 options.global_scale = 7;
                               })},
                      EndToEnd{"FractionsToNearest",
                               true,
                               {"weight_scale=max", "rounding=TONEAREST", "skip_conv_layers=0,5"},
                               options_for([](auto& options) {
                                 options.takes_largest_weight = true;
                                 options.rounds_to_nearest = true;
                                 options.skipped = {0, 5};
                               })}),
    [](const auto& instance) { return std::string(instance.param.name); });

Graph block() {
  return parse_graph(R"(graph net (x: f32[1, 4, 8, 8]) {
    w = constant f32[4, 4, 3, 3] normal(seed = 1, mean = 0, deviation = 0.3)
    b = constant f32[4] normal(seed = 2, mean = 0, deviation = 0.1)
    scale = constant f32[4] uniform(seed = 3, low = 0.5, high = 1.5)
    mean = constant f32[4] normal(seed = 4, mean = 0, deviation = 0.1)
    c = conv(x, w, b) {pads = [1, 1, 1, 1]}
    n = batch_norm(c, scale, b, mean, scale)
    r = relu(n)
    w2 = constant f32[4, 4, 1, 1] normal(seed = 5, mean = 0, deviation = 0.5)
    y = conv(r, w2)
    return y
  })",
                     all_ops());
}

// Batch norms are folded into weights and biases added after the convolution, so that one section
// holds all of it.
TEST(RelayQuantize, FoldsBatchNormsAndBiases) {
  const Graph graph =
      quantize::relay_quantize_model(block(), nullptr, request_for({}, "prepare")).graph;
  std::map<std::string, int> counts = counts_of(graph);
  EXPECT_EQ(counts["batch_norm"], 0);
  EXPECT_EQ(counts["conv"], 2);
  EXPECT_EQ(counts["add"], 1);
  EXPECT_EQ(counts["mul"], 0);
  const Tensor x = Tensor::of(DType::F32, {1, 4, 8, 8}, std::vector<double>(256, 0.5));
  const Tensor before = reference::evaluate(block(), {Datum(x)}).front().tensor(),
               after = reference::evaluate(graph, {Datum(x)}).front().tensor();
  for (std::int64_t k = 0; k < before.size(); ++k)
    EXPECT_NEAR(before.real_at(k), after.real_at(k), 1e-5);
}

// Simulated and real quantization differ only by the rounding of sums.
TEST(RelayQuantize, SimulationApproximatesIntegers) {
  const std::vector<std::string> all = {"skip_conv_layers=none", "global_scale=4"};
  const Graph graph = block();
  std::vector<std::string> simulated = all;
  simulated.emplace_back("do_simulation=true");
  const Graph a = quantize::relay_quantize_model(graph, nullptr, request_for(simulated)).graph;
  const Graph b = quantize::relay_quantize_model(graph, nullptr, request_for(all)).graph;
  EXPECT_GT(counts_of(a)["simulated_quantize"], 4);
  const Tensor x = Tensor::of(DType::F32, {1, 4, 8, 8}, image_of(graph));
  const Tensor left = reference::evaluate(a, {Datum(x)}).front().tensor(),
               right = reference::evaluate(b, {Datum(x)}).front().tensor();
  for (std::int64_t k = 0; k < left.size(); ++k)
    EXPECT_NEAR(left.real_at(k), right.real_at(k), 2 * 4.0 / 128);
}

// Calibration from samples: all values at once or a few per run.
TEST(RelayQuantize, CalibratesFromSamples) {
  const Graph graph = block();
  const quantize::CalibrationSamples samples(graph, "random:3");
  for (const char* mode : {"calibrate_mode=kl_divergence", "calibrate_mode=percentile"}) {
    const auto scales = [&](const char* chunk) {
      return quantize::relay_quantize_model(graph, &samples,
                                            request_for({mode, chunk, "skip_conv_layers=none"}))
          .scales;
    };
    const auto at_once = scales("calibrate_chunk_by=-1");
    EXPECT_EQ(at_once, scales("calibrate_chunk_by=1")) << mode;
    for (const auto& [name, scale] : at_once) EXPECT_GT(scale, 0) << name;
    EXPECT_NE(at_once.front().second, 8) << mode;
  }
}

// Halves away from zero if requested.
TEST(RelayQuantize, RoundsTiesAsConfigured) {
  const Graph graph = parse_graph(R"(graph (x: f32[1, 1, 1, 4]) {
    w = constant f32[1, 1, 1, 1] splat 1.0
    y = conv(x, w)
    return y
  })",
                                  all_ops());
  const Tensor x =
      Tensor::of(DType::F32, {1, 1, 1, 4}, std::vector<double>{0.5, 1.5, -2.5, 0.49999997});
  const auto run = [&](const char* ties) {
    const Graph made =
        quantize::relay_quantize_model(
            graph, nullptr, request_for({"skip_conv_layers=none", "global_scale=128", ties}))
            .graph;
    return reference::evaluate(made, {Datum(x)}).front().tensor().reals();
  };
  EXPECT_EQ(run("ties=even"), (std::vector<double>{0, 2, -2, 0}));
  EXPECT_EQ(run("ties=away"), (std::vector<double>{1, 2, -3, 0}));
}

TEST(RelayQuantize, ReportsUnsupportedNetworks) {
  passes::relay_quantize::Config config;
  const auto refused = [&](const char* setting) {
    return error_text([&] { set_field(config, setting); });
  };
  EXPECT_NE(refused("global_scales=3").find("did you mean 'global_scale'"), std::string::npos);
  EXPECT_NE(refused("global_scale=0").find("a positive number"), std::string::npos);
  EXPECT_NE(refused("rounding=DOWN").find("UPWARD, TONEAREST"), std::string::npos);
  EXPECT_NE(refused("skip_conv_layers=a").find("none, or numbers"), std::string::npos);
  EXPECT_NE(refused("nbit_input").find("FIELD=VALUE"), std::string::npos);
  const auto run = [&](const Graph& graph, const std::vector<std::string>& settings,
                       const char* stop) {
    return error_text(
        [&] { quantize::relay_quantize_model(graph, nullptr, request_for(settings, stop)); });
  };
  EXPECT_NE(run(block(), {}, "anotate").find("did you mean 'annotate'"), std::string::npos);
  EXPECT_NE(run(block(), {"calibrate_mode=percentile"}, "").find("--calibrate=@DIR"),
            std::string::npos);
  const Graph once = quantize::relay_quantize_model(block(), nullptr, request_for({})).graph;
  EXPECT_NE(run(once, {}, "").find("quantized already"), std::string::npos);
}

}  // namespace
}  // namespace tenon::relay_quantization_test
