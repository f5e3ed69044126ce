#include "base/error.h"
#include "documents/document.h"
#include "documents/same_network.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"

#include <gtest/gtest.h>

#include <regex>

namespace tenon::relay_programs_test {
namespace {

const documents::DocumentFormat& relay() { return *documents::find_document_format("relay"); }

std::unique_ptr<documents::Document> read(const std::string& text) {
  return relay().read(text, "program");
}

// Programs with device annotations as TVM's planner prints them, frameworks' value names and free
// comments: they round-trip and pass the check.
TEST(RelayPrograms, DeviceAnnotations) {
  const std::string device =
      "VirtualDevice(device_type=1, virtual_device_id=0, target=Target(id=5a, kind='llvm', "
      "keys={'cpu'}, attrs={'mtriple': \"x86_64\", 'link-params': (bool)0}, host=Target(id=5b, "
      "kind='llvm')))";
  const std::string text = concat(
      "def @main(%onnx::Conv_0 {virtual_device=", device,
      "}: Tensor[(1, 4), float32] /* ty=Tensor[(1, 4), float32] */, %layer1.0.bias: Tensor[(4), "
      "float32] /* ty=Tensor[(4), float32] */, virtual_device=",
      device, ") -> Tensor[(1, 4), float32] {\n",
      "  %0 = add(%onnx::Conv_0, %layer1.0.bias) /* ty=Tensor[(1, 4), float32] */;\n",
      "  %1 = on_device(%0, virtual_device=", device,
      ", constrain_result=True) /* ty=Tensor[(1, 4), float32] */;\n",
      "  device_copy(%1, src_virtual_device=", device, ", dst_virtual_device=", device,
      ") /* ty=Tensor[(1, 4), float32] */\n}\n");
  const auto document = read(text);
  EXPECT_EQ(document->text(""), text);
  EXPECT_TRUE(document->check().mismatches().empty());
  EXPECT_EQ(document->graph().inputs().size(), 2u);
}

TEST(RelayPrograms, ExpressionWithoutAFunction) {
  const Graph graph = read(
                          "free_var %x: Tensor[(3), float32];\n"
                          "free_var %y: Tensor[(3), float32]\n"
                          "%0 = add(%x, %y);\nnn.relu(%0)\n")
                          ->graph();
  EXPECT_EQ(graph.inputs().size(), 2u);
  EXPECT_EQ(graph.node_count(), 2u);
}

// The types of untyped weights are inferred from the operators that read them.
TEST(RelayPrograms, InfersTypesOfParameters) {
  const auto document = read(
      "def @main(%w, %x: Tensor[(1, 3, 8, 8), float32], %b, %gamma, %beta, %mean, %var, %k, %d) {\n"
      "  %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 5]);\n"
      "  %1 = nn.bias_add(%0, %b);\n"
      "  %2 = nn.batch_norm(%1, %gamma, %beta, %mean, %var);\n"
      "  %3 = %2.0;\n"
      "  %4 = nn.conv2d(%3, %k, groups=2, channels=6, kernel_size=[1, 1]);\n"
      "  %5 = nn.batch_flatten(%4);\n"
      "  nn.dense(%5, %d, units=10)\n}\n");
  const Graph graph = document->graph();
  std::vector<std::string> types;
  for (const ValueId input : graph.inputs())
    types.push_back(concat(graph.value(input).name, " ", graph.value(input).type.tensor().dims));
  EXPECT_EQ(types, (std::vector<std::string>{"w [4, 3, 3, 5]", "x [1, 3, 8, 8]", "b [4]",
                                             "gamma [4]", "beta [4]", "mean [4]", "var [4]",
                                             "k [6, 2, 1, 1]", "d [10, 288]"}));
  EXPECT_TRUE(document->check().mismatches().empty());
  for (const char* text : {"def @main(%x) {\n  nn.relu(%x)\n}\n",
                           "def @main(%x: Tensor[(2, 3), float32], %w) {\n  nn.dense(%x, %w)\n}\n",
                           "def @main(%x: Tensor[(2, 3), float32], %w) {\n  nn.relu(%x)\n}\n",
                           "def @main(%x: Tensor[(2, 3), float32], %w) {\n  (%x, %w)\n}\n"}) {
    try {
      read(text)->graph();
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("nothing says the type of %"), std::string::npos)
          << error.what();
    }
  }
}

TEST(RelayPrograms, NumbersAndSequences) {
  const Graph graph = read(
                          "fn (%x: Tensor[(2), int32]) {\n"
                          "  // nobody reads this\n"
                          "  %x * 2i;\n"
                          "  let %t = (%x, 7i64);\n"
                          "  %x + --42i - %t.0\n}\n")
                          ->graph();
  EXPECT_EQ(graph.outputs().size(), 1u);
}

// A program may number its lines and constants in any way; two exchanged lines of a printed program
// are reported.
TEST(RelayPrograms, AcceptsAnyNumbering) {
  EXPECT_TRUE(read("def @main(%x: Tensor[(2), float32]) -> Tensor[(2), float32] {\n"
                   "  %7 = add(%x, meta[relay.Constant][5] /* ty=Tensor[(2), float32] */) /* "
                   "ty=Tensor[(2), float32] */;\n"
                   "  %3 = add(%7, meta[relay.Constant][1] /* ty=Tensor[(2), float32] */) /* "
                   "ty=Tensor[(2), float32] */;\n"
                   "  nn.relu(%3) /* ty=Tensor[(2), float32] */\n}\n")
                  ->check()
                  .mismatches()
                  .empty());
}

// Ops without a counterpart are exported as composites of Relay's operators, and compute the same
// when read with the composite mark and without it.
TEST(RelayPrograms, CompositeBodiesMatchTheOp) {
  const Graph graph = parse_graph(
      R"(graph m (x: f32[2, 4, 3, 3], t: i64[2, 3, 3], w: f32[4], s: f32[4], b: f32[4], m: f32[4], v: f32[4]) {
  weighted = nll_loss(x, t, w) {reduction = "mean"}
  plain = nll_loss(x, t) {reduction = "sum", ignore_index = 1}
  each = nll_loss(x, t, w) {reduction = "none", ignore_index = 0}
  y, mean, variance, now, inverse = batch_norm_training(x, s, b, m, v) {epsilon = 0.01, momentum = 0.8}
  return weighted, plain, each, y, mean, variance, now, inverse
}
)",
      all_ops());
  const std::string text = relay().from_graph(graph)->text("");
  EXPECT_NE(text.find("nn.nll_loss("), std::string::npos);
  EXPECT_EQ(text.find("tenon.batch_norm_training("), std::string::npos) << text;
  const std::regex mark(", Composite=\"[^\"]*\", tenon=\"[^\"]*\"");
  const std::string plain = std::regex_replace(text, mark, "");
  ASSERT_NE(plain, text);
  std::vector<Datum> inputs = models::random_inputs(graph, 7);
  Tensor labels(DType::I64, {2, 3, 3});
  for (std::int64_t k = 0; k < labels.size(); ++k) labels.set_integer(k, k % 4);
  inputs[1] = Datum(labels);
  const auto expected = reference::evaluate(graph, inputs);
  const auto got = reference::evaluate(read(plain)->graph(), inputs);
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    const Tensor &a = got[k].tensor(), &b = expected[k].tensor();
    ASSERT_EQ(a.shape(), b.shape());
    for (std::int64_t n = 0; n < a.size(); ++n)
      EXPECT_NEAR(a.real_at(n), b.real_at(n), 1e-4) << k << " " << n;
  }
}

// Each quantized operator equals its float operator between a dequantize and a quantize.
TEST(RelayPrograms, QuantizedOperators) {
  for (const char* op : {"qnn.abs", "qnn.erf", "qnn.exp", "qnn.hardswish", "qnn.sigmoid",
                         "qnn.tanh", "qnn.sqrt", "qnn.rsqrt", "qnn.log", "qnn.softmax"}) {
    const Graph graph =
        read(concat("fn (%x: Tensor[(2, 3), uint8]) { ", op, "(%x, 0.5f, 3, 0.25f, 4) }\n"))
            ->graph();
    EXPECT_EQ(to_string(graph.value(graph.outputs()[0]).type), "u8[2, 3]") << op;
  }
  const Graph graph =
      read("fn (%x: Tensor[(3), uint8]) { qnn.abs(%x, 0.5f, 4, 0.25f, 1) }\n")->graph();
  const std::vector<std::int64_t> numbers{0, 4, 6};
  Tensor x(DType::U8, {3});
  for (std::int64_t k = 0; k < 3; ++k) x.set_integer(k, numbers[static_cast<std::size_t>(k)]);
  const Tensor y = reference::evaluate(graph, {Datum(x)})[0].tensor();
  EXPECT_EQ(y.integer_at(0), 9);  // |(0 - 4) / 2| = 2 = (9 - 1) / 4
  EXPECT_EQ(y.integer_at(1), 1);
  EXPECT_EQ(y.integer_at(2), 5);
}

// One zero point with a scale per channel.
TEST(RelayPrograms, RequantizeByChannel) {
  const Graph graph = read(
                          "fn (%x: Tensor[(1, 2, 1, 1), int32], %s: Tensor[(2), float32]) {\n"
                          "  qnn.requantize(%x, %s, 0, 0.5f, 3, axis=1, out_dtype=\"uint8\")\n}\n")
                          ->graph();
  EXPECT_EQ(to_string(graph.value(graph.outputs()[0]).type), "u8[1, 2, 1, 1]");
}

TEST(RelayPrograms, Dilate) {
  const Graph graph =
      read("fn (%x: Tensor[(2, 3), float32]) { nn.dilate(%x, strides=[2, 3]) }\n")->graph();
  EXPECT_EQ(to_string(graph.value(graph.outputs()[0]).type), "f32[3, 7]");
  const Tensor x = Tensor::of(DType::F32, {2, 3}, std::vector<double>{1, 2, 3, 4, 5, 6});
  const Tensor y = reference::evaluate(graph, {Datum(x)})[0].tensor();
  EXPECT_EQ(y.real_at(0), 1);
  EXPECT_EQ(y.real_at(3), 2);
  EXPECT_EQ(y.real_at(4), 0);
  EXPECT_EQ(y.real_at(14), 4);
  EXPECT_EQ(y.real_at(20), 6);
}

TEST(RelayPrograms, Losses) {
  const Graph graph = read(
                          "fn (%p: Tensor[(2, 2), float32], %t: Tensor[(2, 2), float32]) {\n"
                          "  (nn.cross_entropy(%p, %t), collapse_sum_like(%p, 1f))\n}\n")
                          ->graph();
  const Tensor p = Tensor::of(DType::F32, {2, 2}, std::vector<double>{0.5, 0.5, 0.25, 0.75});
  const Tensor t = Tensor::of(DType::F32, {2, 2}, std::vector<double>{1, 0, 1, 0});
  const auto results = reference::evaluate(graph, {Datum(p), Datum(t)});
  EXPECT_NEAR(results[0].tensor().real_at(0), (0.693147 + 1.386294) / 2, 1e-5);
  EXPECT_NEAR(results[1].tensor().real_at(0), 2, 1e-6);
}

// A layout that is lost in a round trip is a difference.
TEST(SameNetwork, ComparesLayouts) {
  const auto graph = [](const char* layout) {
    return parse_graph(
        concat("graph g (x: f32[1, 2, 3, 4]", layout, ") {\n  y = relu(x)\n  return y\n}\n"),
        all_ops());
  };
  EXPECT_TRUE(documents::difference(graph("@NHWC"), graph("@NHWC")).is_same());
  EXPECT_FALSE(documents::difference(graph("@NHWC"), graph("")).is_same());
}

}  // namespace
}  // namespace tenon::relay_programs_test
