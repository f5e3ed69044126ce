#include "base/error.h"
#include "documents/aitemplate/python_parser.h"
#include "documents/aitemplate/read_dump.h"
#include "documents/document.h"
#include "documents/same_network.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "unit/documents/mutation.h"
#include "zoo/zoo.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

namespace tenon::aitemplate_test {
namespace {

using documents::aitemplate::PythonParser;
using documents::aitemplate::PythonStyle;

const documents::DocumentFormat& format() { return *documents::find_document_format("aitemplate"); }

std::unique_ptr<documents::Document> read(const std::string& text) {
  return format().read(text, "dump");
}

const std::string kGolden = "aitemplate_conv_add.graph.txt";
const std::string kDynamic = "aitemplate_dynamic_batch.graph.txt";
const std::string kStrided = "aitemplate_strided_gemm.graph.txt";

// ---- values as Python prints them ----

std::vector<std::string> printed_values() {
  std::vector<std::string> values;
  const std::string text = read_fixture("aitemplate_values.txt"), line = "\n=====\n";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find(line, at);
    values.push_back(text.substr(at, end - at));
    at = end + line.size();
  }
  return values;
}

TEST(AITemplateValues, PrintAsPythonDoes) {
  const std::vector<std::string> values = printed_values();  // by pprint of Python 3.11
  EXPECT_EQ(values.size(), 50u);
  for (const std::string& text : values) {
    EXPECT_EQ(pretty_print(PythonParser(text, "value").value(), PythonStyle()), text);
  }
}

TEST(AITemplateValues, NumbersPrintAsPythonDoes) {
  const std::vector<std::pair<double, std::string>> cases = {{0, "0.0"},
                                                             {-0.0, "-0.0"},
                                                             {1, "1.0"},
                                                             {0.1, "0.1"},
                                                             {1e-5, "1e-05"},
                                                             {1e16, "1e+16"},
                                                             {1e15, "1000000000000000.0"},
                                                             {1.5e300, "1.5e+300"},
                                                             {0.0001, "0.0001"},
                                                             {123.25, "123.25"},
                                                             {5e-324, "5e-324"},
                                                             {0.00012, "0.00012"}};
  for (const auto& [number, text] : cases)
    EXPECT_EQ(documents::aitemplate::real_repr(number), text);
}

TEST(AITemplateValues, StringsAreQuotedAsPythonDoes) {
  EXPECT_EQ(documents::aitemplate::text_repr("plain"), "'plain'");
  EXPECT_EQ(documents::aitemplate::text_repr("it's"), "\"it's\"");
  EXPECT_EQ(documents::aitemplate::text_repr("it's \"both\""), "'it\\'s \"both\"'");
  EXPECT_EQ(documents::aitemplate::text_repr("a\\b\n\t\x01"), "'a\\\\b\\n\\t\\x01'");
}

// Python before 3.10 prints a wide data class on one line; since 3.12 an OrderedDict has braces.
TEST(AITemplateValues, PrintStylesOfPythonVersions) {
  const std::string wide =
      "{ 'a': ExecItem(profiling_key='M == 1024 && N == 1024 && K == 1024', exec_cond='M == 1024', "
      "algo='')}";
  const documents::aitemplate::PythonValue value = PythonParser(wide, "value").value();
  EXPECT_EQ(pretty_print(value, {false, false}), wide);
  EXPECT_EQ(pretty_print(value, {true, false}),
            "{ 'a': ExecItem(profiling_key='M == 1024 && N == 1024 && K == 1024',\n"
            "                exec_cond='M == 1024',\n"
            "                algo='')}");
  const documents::aitemplate::PythonValue ordered =
      PythonParser("OrderedDict({'a': 1})", "value").value();
  EXPECT_EQ(pretty_print(ordered, {true, true}), "OrderedDict({'a': 1})");
  EXPECT_EQ(pretty_print(ordered, {true, false}), "OrderedDict([('a', 1)])");
}

void expect_no_mismatch(const documents::Document& document) {
  const documents::Findings findings = document.check();
  for (const auto& mismatch : findings.mismatches()) {
    ADD_FAILURE() << mismatch.kind << " at " << mismatch.place << ": " << mismatch.says << ", not "
                  << mismatch.should_be;
  }
}

// ---- round trips ----

class AITemplateFixture : public ::testing::TestWithParam<std::string> {};

TEST_P(AITemplateFixture, RoundTripsByteForByte) {
  const std::string text = read_fixture(GetParam());
  EXPECT_TRUE(format().recognises(text.substr(0, 4096)));
  EXPECT_EQ(read(text)->text(""), text);
}

TEST_P(AITemplateFixture, PassesItsCheck) {
  const documents::Findings findings = read(read_fixture(GetParam()))->check();
  std::size_t total = 0;
  for (const auto& kind : findings.kinds()) total += kind.total;
  EXPECT_GT(total, 250u);
  EXPECT_TRUE(findings.mismatches().empty());
  expect_no_mismatch(*read(read_fixture(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Files, AITemplateFixture, ::testing::Values(kGolden, kDynamic, kStrided));

TEST(AITemplate, GoldenFileRoundTripsThroughItsGraph) {
  const std::string text = read_fixture(kGolden);
  EXPECT_EQ(format().from_graph(read(text)->graph())->text(""), text);
}

// Everything except the elements of parameters, which a dump omits.
TEST(AITemplate, DynamicBatchRoundTripsThroughItsGraph) {
  const std::string text = read_fixture(kDynamic);
  std::string written = format().from_graph(read(text)->graph())->text("");
  for (std::size_t at = written.find("<tenon"); at != std::string::npos;
       at = written.find("<tenon")) {
    written.replace(at, written.find('>', at) + 1 - at, "None");
  }
  EXPECT_EQ(written, text);
}

TEST(AITemplate, RoundTripsTextOfAnotherPython) {
  const std::string text = read_fixture(kStrided);
  const std::size_t start = text.find("OrderedDict(["), end = text.find("])", start) + 2;
  // In the style of Python 3.8: the data class on one line.
  const std::string key = "'M == 4 && N == 32 && K == 24'", indent(31, ' ');
  const std::string old = "OrderedDict([ ( " + key + ",\n" + indent +
                          "ExecItem(profiling_key=" + key + ", exec_cond=" + key +
                          ", algo='cutlass_tensorop_h16816gemm_128x64_32x6_tn_align_8_8'))])";
  std::string changed = text;
  changed.replace(start, end - start, old);
  EXPECT_EQ(read(changed)->text(""), changed);
  EXPECT_EQ(read(changed)->check().mismatches().size(), 0u);
}

TEST(AITemplate, RecognisesOnlyItsFormat) {
  EXPECT_FALSE(format().recognises(""));
  EXPECT_FALSE(format().recognises("Tensors: three"));
  EXPECT_FALSE(format().recognises("{\"Tensors\": 1}"));
  EXPECT_FALSE(format().recognises("graph (x: f32[2]) {"));
  EXPECT_TRUE(format().recognises("Tensors: \n\nOperators: \n\n"));
}

// ---- the specification's statements about the document ----

TEST(AITemplate, TablesOfTheGoldenFile) {
  const documents::aitemplate::Dump dump =
      documents::aitemplate::read_dump(read_fixture(kGolden), "golden").dump;
  std::vector<std::string> names;
  for (const auto& tensor : dump.tensors) names.push_back(*tensor.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"input_0", "input_1", "bias", "conv2d_0_0", "output_0"}));
  EXPECT_EQ(dump.tensors[3].depth, 1);
  EXPECT_EQ(dump.tensors[4].depth, 2);
  EXPECT_EQ(dump.tensors[4].shape[0].name, "batch_dim");
  EXPECT_EQ(dump.tensors[4].shape[3].name, "bias_dim_3");
  EXPECT_TRUE(dump.tensors[1].is_input);  // a weight that is one
  const documents::aitemplate::OperatorRow& conv = dump.operators.at(0);
  EXPECT_EQ(conv.op, "conv2d");
  EXPECT_EQ(conv.find("epilogue_alignment")->integer, 8);
  ASSERT_EQ(conv.exec_path->entries.size(), 1u);
  EXPECT_EQ(conv.exec_path->entries[0].condition, "NI == 1 && HI == 28 && WI == 28 && CI == 128");
  EXPECT_EQ(algorithm_of(conv.exec_path->entries[0]), "");
  const documents::aitemplate::OperatorRow& group = dump.operators.at(1);
  ASSERT_EQ(group.elementwise_ops.size(), 1u);
  EXPECT_EQ(group.elementwise_ops[0].func->name, "ADD");
  EXPECT_EQ(group.elementwise_ops[0].func->number, 1);
  EXPECT_EQ(group.input_accessors->size(), 2u);
  EXPECT_FALSE((*group.input_accessors)[0].actual_shapes.has_value());
  EXPECT_EQ(group.original_outputs->at(0).name, "output_0");
}

TEST(AITemplate, GraphOfTheGoldenFile) {
  EXPECT_EQ(print(read(read_fixture(kGolden))->graph()),
            "graph (input_0: f16[1, 28, 28, 128]@NHWC, input_1: f16[256, 3, 3, 128]@OHWI, "
            "bias: f16[1, 26, 26, 256]) {\n"
            "  metadata \"aitemplate dim batch_dim\" = \"1 at input_0[0] bias[0]\"\n"
            "  conv2d_0_0 = conv(input_0, input_1)\n"
            "  output_0 = add(bias, conv2d_0_0)\n"
            "  return output_0\n"
            "}\n");
}

// The batch is a symbol; the group of two is one node.
TEST(AITemplate, DynamicBatchIsSymbolic) {
  const Graph graph = read(read_fixture(kDynamic))->graph();
  EXPECT_EQ(to_string(graph.value(graph.find("images")).type), "f32[batch_size, 16, 16, 8]@NHWC");
  EXPECT_EQ(graph.value(graph.find("images")).type.tensor().dims[0].range(), (Range{1, 64}));
  EXPECT_EQ(to_string(graph.value(graph.find("activated")).type), "f32[batch_size, 8, 8, 32]@NHWC");
  const Node& group = graph.node(graph.value(graph.find("activated")).producer);
  EXPECT_EQ(group.op->name, "fused");
  EXPECT_EQ(group.bodies.at(0).node_count(), 2u);
}

// Two operators that write adjacent regions form a concatenation; a partial read is a slice.
TEST(AITemplate, StridedAccessesBecomeSlicesAndConcatenations) {
  const std::string text = print(read(read_fixture(kStrided))->graph());
  for (const char* line :
       {"concatenate_2_0 = concat(add, tanh) {axis = 1}", "einsum(concatenate_2_0, weight)",
        "slice(gemm_rcr_bias_3_0) {starts = [16], ends = [32], axes = [1]}"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << " in\n" << text;
  }
}

TEST(AITemplate, DescribesWhyTheSumIsNotABias) {
  const Page page = read(read_fixture(kGolden))->describe();
  const auto sums = std::find_if(
      page.sections.begin(), page.sections.end(),
      [](const Page::Section& section) { return section.heading == "Sums after convolutions"; });
  ASSERT_NE(sums, page.sections.end());
  ASSERT_EQ(sums->rows.size(), 1u);
  EXPECT_EQ(sums->rows[0].back().text, "stays: 4 axes, not one");
  EXPECT_GE(page.sections.size(), 6u);
}

// ---- claims ----

// After profiling, conditions are ranges and have kernels.
TEST(AITemplate, CheckFindsGapsBetweenConditions) {
  const std::string text = read_fixture(kDynamic);
  const std::size_t start = text.find("OrderedDict(["), end = text.find("])", start) + 2;
  const auto with_ranges = [&](const std::string& low, const std::string& high) {
    const std::string rest =
        " && HI >= 16 && HI <= 16 && WI >= 16 && WI <= 16 && CI == 8', 'cutlass_a')";
    std::string changed = text;
    changed.replace(start, end - start,
                    "OrderedDict([('NI >= 1 && NI <= " + low + rest + ", ('NI >= " + high +
                        " && NI <= 64" + rest + "])");
    return changed;
  };
  EXPECT_EQ(read(with_ranges("8", "9"))->check().mismatches().size(), 0u);
  EXPECT_EQ(read(with_ranges("8", "10"))->check().mismatches().size(), 1u);  // 9 lacks a kernel
}

TEST(AITemplate, CheckFindsWrongOrder) {
  const std::string text = read_fixture(kGolden);
  const std::size_t first = text.find("{ "), second = text.find("\n\n{ ", first) + 2,
                    third = text.find("\n\n{ ", second) + 2;
  const std::string swapped = text.substr(0, first) + text.substr(second, third - 2 - second) +
                              "\n\n" + text.substr(first, second - 2 - first) + "\n\n" +
                              text.substr(third);
  const documents::Findings findings = read(swapped)->check();
  ASSERT_GE(findings.mismatches().size(), 1u);
  EXPECT_EQ(findings.mismatches()[0].kind, "order of tensors");
  EXPECT_EQ(findings.mismatches()[0].should_be, "input_0");
}

// Returns the attribute that contains the number: the last key before it. Empty for values that the
// document does not determine: choices of the profiler (names of kernels; split_k and workspace of
// operators that have them) and alpha.
std::function<std::string(const NumberInText&)> attribute_in(const std::string& text) {
  return [&text](const NumberInText& number) {
    const std::size_t colon = text.rfind("':", number.offset);
    if (colon == std::string::npos) return std::string("name");
    const std::size_t quote = text.rfind('\'', colon - 1);
    std::string key = text.substr(quote + 1, colon - quote - 1);
    const bool is_kernel = text.rfind("cutlass", number.offset) != std::string::npos &&
                           text.find('\'', text.rfind("cutlass", number.offset)) > number.offset;
    const bool was_profiled = text.find("cutlass") != std::string::npos;
    const bool is_choice =
        was_profiled && (key == "split_k" || key == "workspace" || key == "alpha");
    return is_kernel || is_choice ? std::string() : key;
  };
}

class AITemplateMutation : public ::testing::TestWithParam<std::string> {};

TEST_P(AITemplateMutation, FindsChangedNumbers) {
  const std::string text = read_fixture(GetParam());
  const MutationResult result = mutate_numbers("aitemplate", text, attribute_in(text), 100);
  EXPECT_GT(result.tried, 99u);
  EXPECT_EQ(result.caught, result.tried);
  EXPECT_GE(result.first * 10, result.tried * 9);
  for (const std::string& missed : result.missed) ADD_FAILURE() << "missed " << missed;
}

INSTANTIATE_TEST_SUITE_P(Files, AITemplateMutation, ::testing::Values(kGolden, kDynamic, kStrided));

// ---- any graph ----

class AITemplateZoo : public ::testing::TestWithParam<const char*> {};

TEST_P(AITemplateZoo, RoundTripsTheStructure) {
  const Graph graph = zoo::build(GetParam());
  const std::string text = format().from_graph(graph)->text("");
  const std::unique_ptr<documents::Document> again = read(text);
  EXPECT_EQ(again->text(""), text);
  const documents::NetworkDifference found = documents::difference(graph, again->graph());
  EXPECT_EQ(found.first, "");
  EXPECT_TRUE(found.constants.empty());
  expect_no_mismatch(*again);
}

INSTANTIATE_TEST_SUITE_P(Networks, AITemplateZoo,
                         ::testing::Values("alexnet", "bert_base", "densenet121", "gpt2", "lstm",
                                           "mlp?batch=N", "mobilenet_v2", "resnet18?batch=N",
                                           "resnet50", "resnet50?layout=NHWC,batch=N",
                                           "resnet50?form=v1", "squeezenet", "unet256", "unet572",
                                           "vgg16", "vit_b16"));

struct Written {
  const char* graph;
  std::vector<std::string> kinds;  // listed operators
};

class AITemplateNodes : public ::testing::TestWithParam<Written> {};

// The operators that a graph becomes; it round-trips, and the dump passes its check.
TEST_P(AITemplateNodes, ExportToOperators) {
  const Graph graph = parse_graph(GetParam().graph, all_ops());
  const std::string text = format().from_graph(graph)->text("");
  const std::unique_ptr<documents::Document> again = read(text);
  std::vector<std::string> kinds;
  for (const auto& row : documents::aitemplate::read_dump(text, "dump").dump.operators)
    kinds.push_back(row.op);
  EXPECT_EQ(kinds, GetParam().kinds);
  EXPECT_EQ(again->text(""), text);
  const documents::NetworkDifference found = documents::difference(graph, again->graph());
  EXPECT_EQ(found.first, "");
  EXPECT_TRUE(found.constants.empty());
  expect_no_mismatch(*again);
}

INSTANTIATE_TEST_SUITE_P(
    Graphs, AITemplateNodes,
    ::testing::Values(
        Written{R"(graph (x: f16[2, 8, 8, 4]@NHWC, w: f16[8, 3, 3, 4]@OHWI, b: f16[8]) {
          y = conv(x, w, b) {strides = [2, 1], pads = [1, 0, 1, 0]} return y })",
                {"conv2d_bias"}},
        Written{R"(graph (x: f16[2, 8, 8, 4]@NHWC, w: f16[4, 3, 3, 1]@OHWI) {
          y = conv(x, w) {groups = 4} return y })",
                {"conv2d_depthwise"}},
        Written{R"(graph (x: f32[2, 8, 8, 4]@NHWC, w: f32[4, 2, 2, 6]@OHWI, b: f32[6]) {
          y = conv_transpose(x, w, b) {strides = [2, 2]} return y })",
                {"transposed_conv2d_bias"}},
        Written{R"(graph (x: f32[2, 4, 8, 8], w: f32[8, 4, 3, 3]) { y = conv(x, w) return y })",
                {"permute", "permute", "conv2d", "permute"}},
        Written{R"(graph (x: f32[2, 4, 8, 8], w: f32[8, 4, 3, 3]) {
          y = conv(x, w) {pads = [1, 1, 0, 0]} return y })",
                {"conv"}},
        Written{
            R"(graph (x: f32[2, 4, 8, 8]) { y = max_pool(x) {kernel_shape = [2, 2], strides = [2, 2]} return y })",
            {"permute", "max_pool2d", "permute"}},
        Written{
            R"(graph (x: f32[2, 8, 8, 4]@NHWC) { y = average_pool(x) {kernel_shape = [2, 2]} return y })",
            {"avg_pool2d"}},
        Written{
            R"(graph (x: f16[2, 8, 8, 4]@NHWC, w: f16[8, 3, 3, 4]@OHWI, b: f16[8], r: f16[2, 6, 6, 8]@NHWC) {
          y = fused(x, w, b, r) group = graph (x: f16[2, 8, 8, 4]@NHWC, w: f16[8, 3, 3, 4]@OHWI, b: f16[8], r: f16[2, 6, 6, 8]@NHWC) {
            c = conv(x, w, b) s = add(c, r) z = relu(s) return z }
          return y })",
            {"conv2d_bias_add_relu"}},
        Written{R"(graph <N in [1, 32]> (a: f16[N, 16], w: f16[8, 16], b: f16[8]) {
          y = fused(a, w, b) group = graph (a: f16[N, 16], w: f16[8, 16], b: f16[8]) {
            c = einsum(a, w) {equation = "mk,nk->mn"} s = add(c, b) z = gelu(s) {approximate = tanh} return z }
          return y })",
                {"gemm_rcr_bias_fast_gelu"}},
        Written{R"(graph (a: f16[3, 5, 16], b: f16[16, 8], c: f16[3, 8, 5]) {
          y = matmul(a, b) z = einsum(y, c) {equation = "bmk,bkn->bmn"} return z })",
                {"gemm_rrr", "einsum"}},
        Written{R"(graph (a: f16[3, 5, 16], b: f16[3, 8, 16], c: f16[3, 8, 5]) {
          y = einsum(a, b) {equation = "xij,xkj->xik"} z = matmul(y, c) return z })",
                {"bmm_rcr", "bmm_rrr"}},
        Written{R"(graph (a: f32[4, 3, 8], b: f32[8]) {
          s, t = fused(a, b) group = graph (a: f32[4, 3, 8], b: f32[8]) {
            p = add(a, b) q = tanh(p) r = mul(q, p) return p, r }
          return s, t })",
                {"fused_elementwise"}},
        Written{R"(graph (a: f32[4, 3, 8]) {
          s = fused(a) group = graph (a: f32[4, 3, 8]) {
            c = constant f32[] 2 p = mul(a, c) q = tanh(p) return q }
          return s })",
                {"fused"}},
        Written{R"(graph (a: f32[4, 6]) {
          two = constant f32[] 2 b = mul(a, two) c = leaky_relu(b) d = leaky_relu(c) {alpha = 0.5} return d })",
                {"fused_elementwise", "fused_elementwise", "leaky_relu"}},
        Written{R"(graph (a: f32[4, 6], g: f32[6], h: f32[6]) {
          b = layer_norm(a, g, h) c = softmax(b) d = reduce_sum(c) {axes = [1], keep_axes = false} return d })",
                {"layernorm", "softmax", "reduce_sum"}},
        Written{R"(graph (a: f32[2, 4, 4, 6], g: f32[6], h: f32[6]) {
          b = group_norm(a, g, h) {groups = 3, axis = 3} c = reshape(b) {shape = [2, 96]} d = unsqueeze(c) {axes = [1]}
          e = squeeze(d) {axes = [1]} return e })",
                {"groupnorm", "reshape", "unsqueeze", "squeeze"}},
        Written{R"(graph (a: f32[2, 3, 4]) {
          b = transpose(a) {perm = [0, 2, 1]} c = transpose(b) {perm = [1, 0, 2]} d = transpose(c) e = slice(d) {starts = [1], ends = [3], axes = [0]}
          f = concat(e, e) {axis = 1} g, h = split(f) {axis = 0} i = maximum(g, h) return i })",
                {"permute021", "permute102", "permute210", "dynamic_slice", "concatenate", "split",
                 "fused_elementwise"}},
        Written{
            R"(graph (a: f32[2, 3], b: f32[2, 3]) { c = clip(a, max = b) d = neg(c) return d })",
            {"clip", "neg"}},
        Written{R"(graph <N> (a: f32[N, 3]) { b = concat(a, a) {axis = 0} c = relu(b) return c })",
                {"concatenate", "fused_elementwise"}}));

TEST(AITemplate, RoundTripKeepsResults) {
  const Graph graph = zoo::build("mlp");
  const Graph again = read(format().from_graph(graph)->text(""))->graph();
  for (const NodeId id : graph.nodes_in_order()) {
    const ValueId made = graph.node(id).results[0];
    const Constant* constant = graph.constant_of(made);
    if (constant == nullptr) continue;
    const Constant* other = again.constant_of(again.find(graph.value(made).name));
    ASSERT_NE(other, nullptr);
    EXPECT_TRUE(identical(*constant, *other));
  }
}

TEST(AITemplate, RefusesSequences) {
  const Graph graph = parse_graph(
      "graph (a: f32[2]) { s = sequence_construct(a, a) b = sequence_length(s) return b }",
      all_ops());
  try {
    format().from_graph(graph);
    FAIL() << "there are no sequences in AITemplate";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
    EXPECT_NE(std::string(error.what()).find("seq(f32[2])"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tenon::aitemplate_test
