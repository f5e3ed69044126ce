#include "base/error.h"
#include "documents/document.h"
#include "documents/relay/exporter.h"
#include "documents/relay/printer.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"
#include "testing/compare.h"
#include "zoo/zoo.h"

#include <gtest/gtest.h>

#include <map>

namespace tenon::relay_ops_test {
namespace {

std::unique_ptr<documents::Document> read(const std::string& text) {
  return documents::find_document_format("relay")->read(text, "test");
}

std::string text_with_data(const Graph& graph) {
  return documents::relay::print_module(documents::relay::export_graph_with_data(graph),
                                        documents::relay::CommentStyle::Document);
}

void expect_same_results(const Graph& expected, const Graph& actual, const std::string& what) {
  const std::vector<Datum> inputs = models::random_inputs(expected, 1);
  const std::vector<Datum> wanted = reference::evaluate(expected, inputs);
  const std::vector<Datum> got = reference::evaluate(actual, inputs);
  ASSERT_EQ(wanted.size(), got.size()) << what;
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const testing::Comparison comparison = testing::compare(got[k], wanted[k], {1e-5, 1e-4});
    EXPECT_TRUE(comparison.is_equal) << what << ": " << comparison.what;
  }
}

// Text of the ops and their operands, independent of the order of nodes.
std::string structure(const Graph& graph) {
  std::map<ValueId, std::string> named;
  std::vector<std::string> lines;
  for (std::size_t k = 0; k < graph.inputs().size(); ++k)
    named[graph.inputs()[k]] = concat("input ", k);
  for (NodeId id : graph.nodes_in_order()) {
    const Node& node = graph.node(id);
    std::string line = std::string(node.op->name) + "(";
    // Constants by type, other operands by their producer.
    for (const ValueId operand : node.operands) {
      line += operand ? named[operand] + ", " : "_, ";
    }
    line += ")";
    const std::string hashed = std::to_string(std::hash<std::string>()(line));
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      if (!node.results[k]) continue;
      const Type& type = graph.value(node.results[k]).type;
      const std::string dims =
          type.is_tensor() ? to_string(type.tensor().dtype) + to_string(type.tensor().dims) : "?";
      named[node.results[k]] = concat(node.op->name, " ", hashed, ".", k, " ", dims);
    }
  }
  std::string text;
  for (const ValueId output : graph.outputs()) text += named[output] + "\n";
  return text;
}

class RelayZoo : public ::testing::TestWithParam<const char*> {};

TEST_P(RelayZoo, RoundTripsTheStructure) {
  const Graph graph = zoo::build(GetParam());
  const documents::DocumentFormat* relay = documents::find_document_format("relay");
  const auto document = relay->from_graph(graph);
  EXPECT_TRUE(document->check().mismatches().empty());
  const Graph again = document->graph();
  EXPECT_EQ(structure(again), structure(graph));
  EXPECT_EQ(relay->from_graph(again)->text(""), document->text(""));
}

INSTANTIATE_TEST_SUITE_P(Networks, RelayZoo,
                         ::testing::Values("alexnet", "alexnet?layout=NCHW", "vgg16", "resnet18",
                                           "resnet50", "resnet50?layout=NHWC", "resnet50?form=v1",
                                           "mobilenet_v2", "densenet121", "squeezenet", "unet572",
                                           "unet256", "mlp", "gpt2", "bert_base", "lstm"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           for (char& c : name)
                             c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

TEST(RelayZoo, RoundTripKeepsResults) {
  for (const char* spec : {"mlp?batch=2", "squeezenet?size=32,classes=5"}) {
    const Graph graph = zoo::build(spec);
    expect_same_results(graph, read(text_with_data(graph))->graph(), spec);
  }
}

// Round-trips one op through Relay: with its composite mark, and decomposed into Relay's operators.
struct OpCase {
  const char* graph;
};

class RelayOp : public ::testing::TestWithParam<OpCase> {};

TEST_P(RelayOp, RoundTrips) {
  const Graph graph = parse_graph(GetParam().graph, all_ops());
  std::string text = text_with_data(graph);
  const Graph again = read(text)->graph();
  EXPECT_EQ(structure(again), structure(graph)) << text;
  expect_same_results(graph, again, text);
  // Without its composite mark a group is read by its body.
  for (std::size_t at = 0; (at = text.find("Composite=\"tenon.", at)) != std::string::npos;) {
    text.replace(at, 17, "Composite=\"other.");
  }
  for (std::size_t at = 0; (at = text.find(", tenon=\"", at)) != std::string::npos;)
    text.replace(at, 9, ", other=\"");
  const auto plain = read(text);
  expect_same_results(graph, plain->graph(), text);
  const documents::Findings findings = plain->check();
  EXPECT_TRUE(findings.mismatches().empty())
      << findings.mismatches().front().place << findings.mismatches().front().says << " "
      << findings.mismatches().front().should_be << text;
}

#define CASE(signature, call) \
  OpCase { "graph (" signature ") {\n  y = " call "\n  return y\n}" }
#define CASE_WITH(signature, lines, call) \
  OpCase { "graph (" signature ") {\n" lines "\n  y = " call "\n  return y\n}" }

INSTANTIATE_TEST_SUITE_P(
    Ops, RelayOp,
    ::testing::Values(
        CASE("x: f32[2, 3]", "gelu(x)"), CASE("x: f32[2, 3]", "gelu(x) {approximate = tanh}"),
        CASE("x: f32[2, 3]", "softplus(x)"), CASE("x: f32[2, 3]", "softsign(x)"),
        CASE("x: f32[2, 3]", "mish(x)"), CASE("x: f32[2, 3]", "swish(x) {alpha = 1.5}"),
        CASE("x: f32[2, 3]", "hard_sigmoid(x)"), CASE("x: f32[2, 3]", "hard_swish(x)"),
        CASE("x: f32[2, 3]", "elu(x) {alpha = 0.5}"), CASE("x: f32[2, 3]", "celu(x) {alpha = 0.5}"),
        CASE("x: f32[2, 3]", "selu(x)"), CASE("x: f32[2, 3]", "thresholded_relu(x) {alpha = 0.2}"),
        CASE("x: f32[2, 3]", "shrink(x) {bias = 0.1, bound = 0.3}"),
        CASE("x: f32[2, 3]", "reciprocal(x)"), CASE("x: f32[2, 3]", "leaky_relu(x) {alpha = 0.1}"),
        CASE("x: f32[2, 3], s: f32[3]", "prelu(x, s)"),
        CASE("x: f32[2, 3], a: f32[], b: f32[]", "clip(x, a, b)"),
        CASE("x: f32[2, 3], a: f32[]", "clip(x, min = a)"),
        CASE_WITH("x: f32[2, 3]", "  a = constant f32[] -0.25\n  b = constant f32[] 0.5",
                  "clip(x, a, b)"),
        CASE("a: f32[2, 3], b: f32[3]", "mod(a, b)"),
        CASE("a: i32[2, 3], b: i32[3]", "bit_xor(a, b)"),
        CASE("a: f32[2, 3], b: f32[3]", "mod(a, b) {sign = dividend}"),
        CASE("a: f32[4]", "cast(a) {to = i32}"), CASE("a: f32[4], b: f32[4]", "less_equal(a, b)"),
        CASE("x: f32[2, 3]", "identity(x)"), CASE("x: f32[2, 3]", "cast_hint(x) {dtype = i8}"),
        CASE("x: f32[2, 3]", "stop_fusion(x)"),
        CASE("x: f32[2, 4, 5, 5], w: f32[6, 2, 3, 3], b: f32[6]",
             "conv(x, w, b) {groups = 2, pads = [1, 1, 1, 1], strides = [2, 1]}"),
        CASE("x: f32[2, 4, 5], w: f32[6, 4, 3]", "conv(x, w) {pads = [1, 0]}"),
        CASE("x: f32[1, 2, 4, 5, 5], w: f32[3, 2, 2, 3, 3]", "conv(x, w) {dilations = [1, 2, 1]}"),
        CASE("x: f32[2, 5, 5, 4]@NHWC, w: f32[3, 3, 4, 6]@HWIO, b: f32[6]",
             "conv(x, w, b) {auto_pad = same_upper, strides = [2, 2]}"),
        CASE("x: f32[2, 5, 5, 4]@NHWC, w: f32[3, 3, 1, 8]@HWIO", "conv(x, w) {groups = 4}"),
        CASE("x: f32[2, 4, 5, 5], w: f32[4, 3, 3, 3]",
             "conv_transpose(x, w) {strides = [2, 2], output_padding = [1, 0], pads = [1, 1, 0, "
             "0]}"),
        CASE("x: f32[2, 3, 4], w: f32[4, 5]", "matmul(x, w)"),
        CASE("x: f32[2, 3, 4], w: f32[2, 4, 5]", "matmul(x, w)"),
        CASE("x: f32[2, 2, 3, 4], w: f32[2, 4, 5]", "matmul(x, w)"),
        CASE("x: f32[4], w: f32[4, 5]", "matmul(x, w)"),
        CASE_WITH("x: f32[3, 4], w: f32[5, 4]", "  t = transpose(w) {perm = [1, 0]}",
                  "matmul(x, t)"),
        CASE_WITH("x: f32[2, 3, 4], w: f32[2, 5, 4]", "  t = transpose(w) {perm = [0, 2, 1]}",
                  "matmul(x, t)"),
        CASE("x: f32[2, 3], w: f32[3, 4]", "einsum(x, w) {equation = \"ij,jk->ki\"}"),
        CASE("x: f32[1, 2, 6, 6]",
             "max_pool(x) {kernel_shape = [3, 2], strides = [2, 2], pads = [1, 0, 1, 0]}"),
        CASE("x: f32[1, 6, 6, 2]@NHWC",
             "average_pool(x) {kernel_shape = [3, 2], ceil_mode = true, strides = [2, 2], "
             "count_include_pad = true, pads = [1, 0, 1, 0]}"),
        CASE("x: f32[1, 6, 6, 2]@NHWC",
             "average_pool(x) {kernel_shape = [6, 6], strides = [6, 6]}"),
        CASE("x: f32[1, 2, 9]", "max_pool(x) {kernel_shape = [3]}"),
        CASE("x: f32[1, 2, 4, 4]", "resize(x) {scales = [2.0, 2.0], axes = [2, 3]}"),
        CASE("x: f32[1, 2, 4, 4]", "resize(x) {sizes = [6, 7], axes = [2, 3], mode = linear}"),
        CASE("x: f32[1, 2, 4, 4]",
             "resize(x) {sizes = [6, 7], axes = [2, 3], mode = nearest, coordinates = asymmetric, "
             "rounding = floor}"),
        CASE("x: f32[1, 8, 4, 4]", "depth_to_space(x) {block = 2, mode = crd}"),
        CASE("x: f32[1, 2, 4, 4]", "space_to_depth(x) {block = 2}"),
        CASE("x: f32[2, 3, 4], s: f32[4], b: f32[4]", "layer_norm(x, s, b)"),
        CASE("x: f32[2, 3, 4], s: f32[3, 4]", "layer_norm(x, s) {axis = 1}"),
        CASE("x: f32[2, 3, 4], s: f32[4]", "rms_norm(x, s)"),
        CASE("x: f32[2, 4, 3], s: f32[4], b: f32[4]", "group_norm(x, s, b) {groups = 2}"),
        CASE("x: f32[2, 4, 3], s: f32[4], b: f32[4]", "instance_norm(x, s, b)"),
        CASE_WITH("x: f32[2, 4, 3], s: f32[4], b: f32[4], m: f32[4]",
                  "  v = constant f32[4] [1, 0.5, 2, 3]",
                  "batch_norm(x, s, b, m, v) {epsilon = 0.01}"),
        CASE("x: f32[1, 7, 2, 2]", "lrn(x) {size = 3}"),
        CASE("x: f32[1, 2, 2, 7]@NHWC", "lrn(x) {size = 3, bias = 2.0}"),
        CASE("x: f32[2, 5]", "softmax(x) {axis = 0}"), CASE("x: f32[2, 5]", "log_softmax(x)"),
        CASE("x: f32[2, 3, 4]", "reduce_sum(x) {axes = [0, 2]}"),
        CASE("x: f32[2, 3]", "reduce_max(x) {keep_axes = false}"),
        CASE("x: f32[2, 3]", "reduce_l2(x) {axes = [1]}"),
        CASE("x: f32[2, 3]", "reduce_l1(x) {axes = [1]}"),
        CASE("x: f32[2, 3]", "reduce_sum_square(x)"),
        CASE("x: f32[2, 3]", "reduce_log_sum_exp(x) {axes = [1]}"),
        CASE("x: f32[2, 3]", "arg_max(x) {axis = 1}"),
        CASE("x: f32[2, 3]", "arg_min(x) {axis = 0, keep_axes = false}"),
        CASE("q: f32[1, 2, 3, 4], k: f32[1, 2, 5, 4], v: f32[1, 2, 5, 6]", "attention(q, k, v)"),
        CASE("q: f32[1, 2, 3, 4], k: f32[1, 2, 3, 4], v: f32[1, 2, 3, 4]",
             "attention(q, k, v) {causal = true, scale = 0.3}"),
        CASE("x: f32[2, 6]", "reshape(x) {shape = [3, -1]}"),
        CASE("x: f32[2, 6, 3]", "transpose(x)"), CASE("x: f32[1, 6, 1]", "squeeze(x) {axes = [0]}"),
        CASE("x: f32[6, 2]", "unsqueeze(x) {axes = [0, 1]}"),
        CASE("x: f32[6, 2]", "unsqueeze(x) {axes = [0, 2]}"),
        CASE("a: f32[2, 3], b: f32[4, 3]", "concat(a, b) {axis = 0}"),
        CASE("x: f32[6, 8]",
             "slice(x) {starts = [1, -1], ends = [5, -8], axes = [0, 1], steps = [2, -2]}"),
        CASE("x: f32[2, 3]", "pad(x) {pads = [1, 0, 0, 2]}"),
        CASE("x: f32[4, 3]", "pad(x) {pads = [2, 1], axes = [0], mode = reflect}"),
        CASE_WITH("x: f32[2, 3]", "  v = constant f32[] 1.5", "pad(x, v) {pads = [1, 0, 0, 2]}"),
        CASE("x: f32[1, 3]", "expand(x) {shape = [2, 4, 3]}"),
        CASE("x: f32[1, 3]", "tile(x) {repeats = [2, 2]}"), CASE("x: f32[2, 3]", "shape(x)"),
        CASE("x: f32[2, 3]", "size(x)"),
        CASE_WITH("x: f32[5, 3]", "  i = constant i64[2, 2] [0, 4, 2, 1]", "gather(x, i)"),
        CASE_WITH("x: f32[3, 3]", "  i = constant i64[2, 3] [0, 1, 2, 2, 1, 0]",
                  "gather_elements(x, i)"),
        CASE_WITH("x: f32[3, 3]", "  i = constant i64[2, 2] [0, 1, 2, 2]", "gather_nd(x, i)"),
        CASE_WITH("x: f32[3, 3], u: f32[1, 3]", "  i = constant i64[1, 3] [0, 1, 2]",
                  "scatter_elements(x, i, u) {reduction = add}"),
        CASE_WITH("", "  i = constant i64[3] [0, 2, 1]\n  v = constant f32[2] [0, 1]",
                  "one_hot(i, v) {depth = 4}"),
        CASE("x: f32[3, 3]", "cumsum(x) {axis = 1}"),
        CASE("x: f32[3, 4]", "trilu(x) {k = 1, upper = false}"),
        CASE("c: bool[3], a: f32[3], b: f32[3]", "where(c, a, b)"),
        OpCase{"graph (x: f32[6, 4]) {\n  a, b = split(x) {axis = 1, sizes = [1, 3]}\n  return b, "
               "a\n}"},
        OpCase{"graph (x: f32[6, 4]) {\n  a, b = top_k(x) {k = 2}\n  return b, a\n}"},
        OpCase{"graph (c: bool[], a: f32[2], b: f32[2]) {\n  s = sigmoid(a)\n  y, z = if(c, s, b) "
               "then = graph (p: f32[2], q: f32[2]) {\n"
               "    r = add(p, q)\n    return r, p\n  } else = graph (p: f32[2], q: f32[2]) {\n    "
               "r = mul(p, q)\n    return q, r\n  }\n  return z, y\n}"}));

// Ops without a counterpart in Relay are exported as calls of Tenon's.
TEST(RelayExport, CallsTenonOpsWithoutCounterpart) {
  const Graph graph = parse_graph(
      "graph (m: f32[4, 4], s: f32[5]) {\n  a = random_normal() {shape = [4]}\n  b = "
      "random_normal() {shape = [4]}\n"
      "  c = det(m)\n  return a, b, c\n}",
      all_ops());
  const std::string text = documents::find_document_format("relay")->from_graph(graph)->text("");
  EXPECT_NE(text.find("tenon.det(%m, tenon=\"graph (x0: f32[4, 4]) { y0 = det(x0) return y0 }\")"),
            std::string::npos)
      << text;
  EXPECT_EQ(structure(read(text)->graph()), structure(graph));
}

// A transpose that is exported inside a native node is not absorbed by a product.
TEST(RelayExport, ProductOfANativeTranspose) {
  const Graph graph = parse_graph(
      "graph (x: u64[4, 1]) { c = constant u64[8, 1] [0, 1, 1, 0, 9, 0, 1, 1] "
      "t = transpose(c) {perm = [1, 0]} y = matmul(x, t) return y }",
      all_ops());
  EXPECT_EQ(
      structure(
          read(documents::find_document_format("relay")->from_graph(graph)->text(""))->graph()),
      structure(graph));
}

TEST(RelayExport, ListsValuesThatAreNotTensors) {
  const Graph graph = parse_graph(
      "graph (a: f32[2], t: string[2]) { s = sequence_construct(a, a) b = sequence_length(s) "
      "u = string_concat(t, t) return b, u }",
      all_ops());
  try {
    documents::find_document_format("relay")->from_graph(graph);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
    for (const char* part : {"sequence_construct", "elements of type string"})
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tenon::relay_ops_test
