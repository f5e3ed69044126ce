#include "base/error.h"
#include "driver/zoo/zoo.h"
#include "frontends/document.h"
#include "frontends/seeded_weight.h"
#include "frontends/tensorscope/check.h"
#include "frontends/tensorscope/describe.h"
#include "frontends/tensorscope/export.h"
#include "frontends/tensorscope/import.h"
#include "frontends/tensorscope/match.h"
#include "frontends/tensorscope/names.h"
#include "frontends/tensorscope/windows.h"
#include "ir/verify.h"
#include "ops/differentiate.h"
#include "reference/evaluate.h"
#include "unit/frontends/mutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

namespace tenon::tensorscope {
namespace {

const char* const alexnet = "tensorscope_alexnet.nodes.txt";
const char* const two_gpus = "tensorscope_two_gpus.nodes.txt";
const char* const small_step = "tensorscope_small_step.nodes.txt";

Table read_table(const char* fixture) { return parse_table(read_fixture(fixture), fixture); }

std::unique_ptr<Document> read_document(const std::string& text) {
  return find_document_format("tensorscope")->read(text, "table");
}

std::size_t count_kind(const Table& table, RowKind kind) {
  return static_cast<std::size_t>(
      std::ranges::count_if(table.rows, [&](const Row& row) { return row.kind == kind; }));
}

std::size_t count_op(const Table& table, const Step& step, std::string_view op) {
  std::size_t count = 0;
  for (std::size_t k = 0; k < table.rows.size(); ++k)
    count += table.rows[k].kind == RowKind::Node && step.ops[k] == op;
  return count;
}

// The names of what a node reads.
std::vector<std::string> sources_of(const Table& table, const Step& step, std::string_view node) {
  std::vector<std::string> names;
  for (const Source& source : step.sources[static_cast<std::size_t>(table.find_node(node))]) {
    names.push_back(source.row < 0 ? "?" : table.rows[static_cast<std::size_t>(source.row)].name());
  }
  return names;
}

std::string mismatches_of(const Findings& findings) {
  std::string text;
  for (const auto& each : findings.mismatches()) {
    text += concat(each.kind, " at ", each.place, ": ", each.says, " / ", each.should_be, "\n");
  }
  return text;
}

std::string section_text(const Page& page) {
  std::string text = page.title + "\n";
  for (const Page::Section& section : page.sections) {
    text += section.heading + "\n" + section.text + "\n";
    for (const auto& row : section.rows) {
      for (const std::string& cell : row) text += cell + " | ";
      text += "\n";
    }
  }
  return text;
}

TEST(TensorScope, ComesBackByteForByte) {
  for (const char* fixture : {alexnet, two_gpus, small_step}) {
    const std::string text = read_fixture(fixture);
    EXPECT_EQ(read_document(text)->text(""), text) << fixture;
    EXPECT_TRUE(find_document_format("tensorscope")->recognises(text.substr(0, 4096)));
  }
  EXPECT_THROW(read_document(read_fixture(alexnet))->text("later"), Error);
}

TEST(TensorScope, IsNotTakenForOtherDocuments) {
  for (const char* other :
       {"aitemplate_conv_add.graph.txt", "megengine_resnet50.profile.json",
        "resnet50_v1.before.relay", "resnet50_v1.after.relay", "unet_chainer.graph.txt"}) {
    const std::string text = read_fixture(other).substr(0, 4096);
    EXPECT_FALSE(find_document_format("tensorscope")->recognises(text)) << other;
  }
  EXPECT_FALSE(
      find_document_format("tensorscope")->recognises("graph (x: f32[2]) {\n  return x\n}\n"));
  EXPECT_FALSE(
      find_document_format("tensorscope")->recognises("a, (b), c\nsome, (other) text, 3\n"));
}

TEST(TensorScope, HasTheRowsOfTheSpecification) {
  const Table table = read_table(alexnet);
  const Step step = reconstruct(table);
  EXPECT_EQ(table.rows.size(), 178u);
  EXPECT_EQ(count_kind(table, RowKind::Node), 96u);
  EXPECT_EQ(count_kind(table, RowKind::Stream), 62u);
  EXPECT_EQ(count_kind(table, RowKind::Fetch), 10u);
  EXPECT_EQ(count_kind(table, RowKind::Copy), 10u);
  const std::map<std::string, std::size_t> counts = {{"VariableV2", 11},
                                                     {"Identity", 11},
                                                     {"Const", 11},
                                                     {"NoOp", 1},
                                                     {"Conv2D", 5},
                                                     {"BiasAdd", 5},
                                                     {"Relu", 5},
                                                     {"LRN", 2},
                                                     {"MaxPool", 3},
                                                     {"MaxPoolGrad", 3},
                                                     {"LRNGrad", 2},
                                                     {"ReluGrad", 5},
                                                     {"BiasAddGrad", 5},
                                                     {"Conv2DBackpropFilter", 5},
                                                     {"Conv2DBackpropInput", 4},
                                                     {"Transpose", 18}};
  std::size_t total = 0;
  for (const auto& [op, count] : counts) {
    EXPECT_EQ(count_op(table, step, op), count) << op;
    total += count;
  }
  EXPECT_EQ(total, 96u);
}

// What each node of the training step of AlexNet reads.
TEST(TensorScope, FindsTheDataFlowOfAlexNet) {
  const Table table = read_table(alexnet);
  const Step step = reconstruct(table);
  const std::string first = "-TransposeNHWCToNCHW-LayoutOptimizer",
                    last = "-TransposeNCHWToNHWC-LayoutOptimizer";
  std::map<std::string, std::vector<std::string>> expected = {
      {"conv1/Conv2D", {"conv1/Conv2D-0" + first, "conv1/weights/read"}},
      {"conv2/Conv2D", {"pool1", "conv2/weights/read"}},
      {"conv3/Conv2D", {"pool2", "conv3/weights/read"}},
      {"conv4/Conv2D", {"conv3", "conv4/weights/read"}},
      {"conv5/Conv2D", {"conv4", "conv5/weights/read"}},
      {"lrn1/LRN", {"conv1-2-1" + last}},
      {"lrn2/LRN", {"conv2-1-1" + last}},
      {"pool1", {"gradients/pool1_grad/MaxPoolGrad-0" + first}},
      {"pool2", {"gradients/pool2_grad/MaxPoolGrad-0" + first}},
      {"pool5", {"conv5"}},
      // The loss is half the sum of squares of pool5, whose gradient is pool5 itself.
      {"gradients/pool5_grad/MaxPoolGrad", {"conv5", "pool5", "pool5"}},
      {"gradients/conv5_grad/ReluGrad", {"gradients/pool5_grad/MaxPoolGrad", "conv5"}},
      {"gradients/conv4_grad/ReluGrad",
       {"gradients/conv5/Conv2D_grad/Conv2DBackpropInput", "conv4"}},
      {"gradients/conv3_grad/ReluGrad",
       {"gradients/conv4/Conv2D_grad/Conv2DBackpropInput", "conv3"}},
      {"gradients/conv2_grad/ReluGrad", {"gradients/conv2_grad/ReluGrad-0" + first, "conv2"}},
      {"gradients/conv1_grad/ReluGrad", {"gradients/conv1_grad/ReluGrad-0" + first, "conv1"}},
      {"gradients/pool2_grad/MaxPoolGrad",
       {"gradients/pool2_grad/MaxPoolGrad-0" + first, "pool2",
        "gradients/conv3/Conv2D_grad/Conv2DBackpropInput"}},
      {"gradients/pool1_grad/MaxPoolGrad",
       {"gradients/pool1_grad/MaxPoolGrad-0" + first, "pool1",
        "gradients/conv2/Conv2D_grad/Conv2DBackpropInput"}},
      {"gradients/lrn2/LRN_grad/LRNGrad",
       {"gradients/pool2_grad/MaxPoolGrad-0-0" + last, "conv2-1-1" + last, "lrn2/LRN"}},
      {"gradients/lrn1/LRN_grad/LRNGrad",
       {"gradients/pool1_grad/MaxPoolGrad-0-0" + last, "conv1-2-1" + last, "lrn1/LRN"}},
      // The optimiser's transposes.
      {"conv1/Conv2D-0" + first, {"Variable/read", "PermConstNHWCToNCHW-LayoutOptimizer"}},
      {"gradients/pool1_grad/MaxPoolGrad-0" + first,
       {"lrn1/LRN", "PermConstNHWCToNCHW-LayoutOptimizer"}},
      {"gradients/pool2_grad/MaxPoolGrad-0" + first,
       {"lrn2/LRN", "PermConstNHWCToNCHW-LayoutOptimizer"}},
      {"gradients/conv1_grad/ReluGrad-0" + first,
       {"gradients/lrn1/LRN_grad/LRNGrad", "PermConstNHWCToNCHW-LayoutOptimizer"}},
      {"gradients/conv2_grad/ReluGrad-0" + first,
       {"gradients/lrn2/LRN_grad/LRNGrad", "PermConstNHWCToNCHW-LayoutOptimizer"}},
      {"conv3-2-0" + last, {"conv3", "PermConstNCHWToNHWC-LayoutOptimizer"}},
  };
  const std::vector<std::string> images = {"Variable/read", "pool1-2-0" + last, "pool2-3-0" + last,
                                           "conv3-2-0" + last, "conv4-0-0" + last};
  const std::vector<std::string> ordinals = {"0-0", "0-0", "0-0", "1-0", "1-0"};
  for (std::size_t k = 0; k < 5; ++k) {
    const std::string layer = concat("conv", k + 1),
                      back = concat("gradients/", layer, "/Conv2D_grad/");
    const std::string slope = concat("gradients/", layer, "_grad/ReluGrad"),
                      turned = concat(slope, "-", ordinals[k], last);
    expected[layer + "/BiasAdd"] = {layer + "/Conv2D", layer + "/biases/read"};
    expected[layer] = {layer + "/BiasAdd"};
    expected[concat("gradients/", layer, "/BiasAdd_grad/BiasAddGrad")] = {turned};
    expected[back + "Conv2DBackpropFilter"] = {
        images[k], concat("ConstantFolding/", back, "ShapeN-matshapes-1"), turned};
    if (k > 0) {
      expected[back + "Conv2DBackpropInput"] = {back + "Conv2DBackpropInput-0-LayoutOptimizer",
                                                layer + "/weights/read", slope};
    }
  }
  std::size_t compared = 0;
  for (const auto& [node, sources] : expected) {
    EXPECT_EQ(sources_of(table, step, node), sources) << node;
    compared += !layout_transpose(node);
  }
  EXPECT_EQ(compared, 44u);
  EXPECT_EQ(step.order.size(), 96u);
  std::vector<char> is_made(table.rows.size(), 0);
  for (const std::size_t at : step.order) {
    for (const Source& source : step.sources[at])
      EXPECT_TRUE(is_made[static_cast<std::size_t>(source.row)]);
    is_made[at] = 1;
  }
}

TEST(TensorScope, SolvesTheWindowsOfAlexNet) {
  const Table table = read_table(alexnet);
  const Step step = reconstruct(table);
  const std::map<std::size_t, Windows> windows =
      find_windows(table, step, find_layouts(table, step));
  const auto text = [&](std::string_view node) {
    const Windows& found = windows.at(static_cast<std::size_t>(table.find_node(node)));
    std::string all = concat(found.kernel[0], "x", found.kernel[1], "/", found.strides[0],
                             found.is_same ? " SAME" : " VALID");
    for (const std::int64_t pad : found.pads) all += concat(" ", pad);
    return all;
  };
  EXPECT_EQ(text("conv1/Conv2D"), "11x11/4 SAME 3 3 4 4");
  EXPECT_EQ(text("conv2/Conv2D"), "5x5/1 SAME 2 2 2 2");
  EXPECT_EQ(text("conv5/Conv2D"), "3x3/1 SAME 1 1 1 1");
  EXPECT_EQ(text("gradients/conv1/Conv2D_grad/Conv2DBackpropFilter"), "11x11/4 SAME 3 3 4 4");
  for (const char* pool : {"pool1", "pool2", "pool5", "gradients/pool1_grad/MaxPoolGrad"}) {
    EXPECT_EQ(text(pool), "3x3/2 VALID 0 0 0 0") << pool;
  }
  EXPECT_FALSE(solve_windows({13, 13}, {14, 14}, {3, 3}));
  EXPECT_FALSE(solve_windows({13, 13}, {0, 0}, {3, 3}));
}

TEST(TensorScope, EveryClaimHolds) {
  for (const char* fixture : {alexnet, two_gpus, small_step}) {
    const Findings findings = read_document(read_fixture(fixture))->check();
    EXPECT_EQ(mismatches_of(findings), "") << fixture;
    EXPECT_GE(findings.kinds().size(), 10u);
  }
  std::map<std::string, std::size_t> claims;
  const Findings findings = read_document(read_fixture(alexnet))->check();
  for (const auto& kind : findings.kinds()) claims[kind.name] = kind.total;
  EXPECT_EQ(claims["input shape"], 134u);
  EXPECT_EQ(claims["output shape"], 73u);
  EXPECT_EQ(claims["bytes of a copy"], 10u);
  EXPECT_EQ(claims["gradient's shape"], 24u);
  EXPECT_EQ(claims["kernels on a stream"], 62u);
}

std::string check_text(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  try {
    return mismatches_of(read_document(text)->check());
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(TensorScope, ChecksNameThePlaceWhatItSaysAndWhatItShouldBe) {
  const std::string text = read_fixture(alexnet);
  const auto has = [](const std::string& all, std::string_view part) {
    EXPECT_NE(all.find(part), std::string::npos) << "in: " << all << "\nexpected: " << part;
  };
  has(check_text(text, "(output 92928 bytes)", "(output 92929 bytes)"),
      "bytes of a copy at line 82, column 83: 92929 / 92928");
  has(check_text(text, "pool5, (128x256x13x13), (128x256x6x6)",
                 "pool5, (128x256x13x13), (128x257x6x6)"),
      "line 177,");
  has(check_text(text, "lrn1/LRN, (128x56x56x64)", "lrn1/LRN, (128x56x56x65)"),
      "input shape at line 165, column 11: 128x56x56x65");
  has(check_text(text, "conv1/biases/read, (64x1)", "conv1/biases/read, (65x1)"),
      "input shape at line 31, column 20: 65x1 / 64x1");
  has(check_text(text, "conv2:Relu, (no input), (no output), GPU, 0",
                 "conv2:Relu, (no input), (no output), GPU, 1"),
      "device of a stream at line 46, column 43: GPU:1 / GPU:0");
  has(check_text(text, "conv2:Relu,", "conv2:Relv,"),
      "operator of a stream at line 46, column 1: Relv / Relu");
  has(check_text(text, "BiasAddGrad_0_8, (256x1)", "BiasAddGrad_0_3, (256x1)"),
      "number of a fetch");
  has(check_text(text, "BiasAddGrad_0_0, (64x1), (no output), CPU, 0",
                 "BiasAddGrad_0_0, (64x1), (no output), CPU, 1"),
      "device of a fetch");
  has(check_text(text, "conv1-2-1-TransposeNCHWToNHWC-LayoutOptimizer, ",
                 "conv1-2-3-TransposeNCHWToNHWC-LayoutOptimizer, "),
      "conv1-2-1-TransposeNCHWToNHWC-LayoutOptimizer");
  has(check_text(text, "^conv2/weights/read, ^pool1", "^conv2/weights/read, ^pool2"),
      "control edge at line 2, column 86");
}

// Every number that the document determines: not those of layers, which are names; nor numbers of
// TensorFlow's edges and of consumers in the transposes' names, which come from its graph's
// numbering and from the order of a set.
std::string checkable_field(const std::string& text, const NumberInText& number) {
  const std::size_t start = text.rfind('\n', number.offset) + 1;
  const std::size_t comma = text.find(", ", start);
  if (number.offset > comma) {
    const std::size_t field = text.rfind(' ', number.offset);
    if (text.compare(field, 2, " ^") == 0) return "name";
    const std::size_t end = text.find('\n', number.offset);
    if (number.offset + number.length == end) return "device index";
    if (text.compare(text.rfind('(', number.offset), 8, "(output ") == 0) return "bytes";
    if (text.compare(number.offset - 3, 3, "int") == 0) return "element type";
    return "extent";
  }
  const std::string name = text.substr(start, comma - start);
  const std::size_t at = number.offset - start, end = at + number.length;
  if (name.starts_with("edge_") && at == 5) return "";
  if (name.starts_with("_retval_") && end == name.size()) return "number of a fetch";
  if (name.starts_with("_retval_") && at > name.rfind('_', name.rfind('_') - 1))
    return "port of a fetch";
  const std::size_t mark = name.find("-LayoutOptimizer");
  const std::size_t turn = name.find("-Transpose");
  const std::size_t tail = turn == std::string::npos ? mark : turn;
  if (tail != std::string::npos && end == tail) return "input in a name";
  if (tail != std::string::npos && end < tail &&
      name.find_first_not_of("0123456789-", at) == tail + 1)
    return "";
  if (name.find("-matshapes-") != std::string::npos && end == name.size()) return "port in a name";
  return "name";
}

TEST(TensorScopeMutation, ChangesOfNumbersAreFound) {
  for (const char* fixture : {alexnet, two_gpus}) {
    const std::string text = read_fixture(fixture);
    const MutationResult result = mutate_numbers(
        "tensorscope", text,
        [&](const NumberInText& number) { return checkable_field(text, number); },
        fixture == alexnet ? 220 : 80);
    EXPECT_GT(result.share(), 0.95);
    for (const std::string& missed : result.missed) std::cout << "  missed " << missed << "\n";
  }
}

TEST(TensorScope, DescribesTheStep) {
  const std::string page = section_text(read_document(read_fixture(alexnet))->describe());
  for (const char* part :
       {"178 rows, 10 on CPU:0, 168 on GPU:0",
        "18 of them, 5 to NCHW and 13 to NHWC, move 2.245 GB",
        "around LRN, which has NHWC kernels only | 4 | 4 | 1.395 GB",
        "images are kept as NHWC | 1 | 0 | 154 MB",
        "in front of fetched gradients, whose nodes are kept as they are | 0 | 9 | 696 MB",
        "10 copies, 9878784 bytes",
        "conv1/Conv2D | Conv2D | Variable/read, conv1/weights/read | 128x64x56x56 NCHW, 11x11/4 "
        "SAME",
        "input 0 of pool5: conv5, of 6 that have the shape", "not found: 0"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part << "\nin " << page;
  }
}

TEST(TensorScope, GraphOfAlexNetIsSound) {
  const Graph graph = read_document(read_fixture(alexnet))->graph();
  EXPECT_TRUE(problems_of(graph).empty());
  EXPECT_TRUE(graph.inputs().empty());
  ASSERT_EQ(graph.outputs().size(), 10u);
  EXPECT_EQ(graph.value(graph.outputs()[1]).name,
            "gradients/conv1/Conv2D_grad/Conv2DBackpropFilter");
  const auto type = [&](std::string_view name) {
    return to_string(graph.value(graph.find(name)).type);
  };
  EXPECT_EQ(type("Variable"), "f32[128, 224, 224, 3]@NHWC");
  EXPECT_EQ(type("conv1/weights"), "f32[11, 11, 3, 64]@HWIO");
  EXPECT_EQ(type("conv1/Conv2D"), "f32[128, 64, 56, 56]@NCHW");
  EXPECT_EQ(type("lrn1/LRN"), "f32[128, 56, 56, 64]@NHWC");
  EXPECT_EQ(type("gradients/conv2/Conv2D_grad/Conv2DBackpropInput"), "f32[128, 64, 27, 27]@NCHW");
  EXPECT_EQ(type("gradients/conv1/Conv2D_grad/Conv2DBackpropFilter"), "f32[11, 11, 3, 64]@HWIO");
  const Constant* permutation =
      graph.constant_of(graph.find("PermConstNHWCToNCHW-LayoutOptimizer"));
  EXPECT_EQ(permutation->materialise().integers(), (std::vector<std::int64_t>{0, 3, 1, 2}));
}

std::set<std::string> lines_of(const std::string& text) {
  std::set<std::string> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    lines.insert(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

// Through the graph only numbers of edges are lost: 168 rows are the same text, and the ten copies
// are the same but for that number.
TEST(TensorScope, TheWholeTableComesOutOfItsGraph) {
  const Table table = read_table(alexnet);
  Table made = export_table(import_graph(table, reconstruct(table), "table"));
  const std::set<std::string> before = lines_of(print_table(table)),
                              after = lines_of(print_table(made));
  std::size_t same = 0;
  for (const std::string& line : after) same += before.contains(line);
  EXPECT_EQ(same, 168u);
  ASSERT_EQ(made.rows.size(), 178u);
  std::set<std::string> copies_before, copies_after;
  for (Row row : table.rows) {
    row.edge = row.edge ? std::optional<std::int64_t>(0) : row.edge;
    if (row.kind == RowKind::Copy) copies_before.insert(print_row(row));
  }
  for (Row row : made.rows) {
    row.edge = row.edge ? std::optional<std::int64_t>(0) : row.edge;
    if (row.kind == RowKind::Copy) copies_after.insert(print_row(row));
  }
  EXPECT_EQ(copies_before, copies_after);
}

// The document's forward rows: those of layout-free tensors and of LRN come out of zoo:alexnet as
// it is (NHWC), those that the layout optimiser turned come out of it in NCHW.
TEST(TensorScope, ForwardRowsComeOutOfTheZoo) {
  const std::set<std::string> document = lines_of(read_fixture(alexnet));
  std::set<std::string> common;
  const std::map<std::string, std::size_t> expected = {{"NHWC", 45}, {"NCHW", 59}};
  for (const auto& [layout, count] : expected) {
    const Graph graph = zoo::build("alexnet?batch=128,images=variable,layout=" + layout);
    std::size_t found = 0;
    for (const std::string& line : lines_of(print_table(export_table(graph)))) {
      if (!document.contains(line)) continue;
      ++found;
      common.insert(line);
    }
    EXPECT_EQ(found, count) << layout;
  }
  // All 62 rows without "gradients", transposes, permutations, fetches and copies; and _SOURCE.
  std::size_t forward = 0;
  for (const std::string& line : document) {
    const bool is_other = line.find("gradients/") != std::string::npos ||
                          line.find("LayoutOptimizer") != std::string::npos;
    forward += !is_other;
    EXPECT_TRUE(is_other || common.contains(line)) << line;
  }
  EXPECT_EQ(forward, 63u);
}

TEST(TensorScope, MatchesTheGraphOfTheZoo) {
  const Table table = read_table(alexnet);
  const Step step = reconstruct(table);
  const Graph graph = zoo::build("alexnet?batch=128");
  const Match match = match_graph(table, step, graph);
  // 42 forward rows: images and ten weights, each with its /read, and 20 nodes.
  EXPECT_EQ(match.pairs.size(), 42u);
  std::size_t equal = 0;
  for (const Match::Pair& pair : match.pairs) equal += pair.agreement == Agreement::Equal;
  EXPECT_EQ(equal, 24u);  // weights, images and LRN; the others are NCHW in the table
  EXPECT_EQ(match.left_rows.size(), 54u);
  EXPECT_TRUE(match.left_values.empty());
  for (const Match::Left& left : match.left_rows) {
    const Row& row = table.rows[left.row];
    EXPECT_TRUE(is_in_gradients(row.node) ||
                row.node.find("LayoutOptimizer") != std::string::npos || row.node == "_SOURCE")
        << row.node << ": " << left.reason;
  }
  const Graph other = zoo::build("alexnet?batch=64");
  EXPECT_LT(match_graph(table, step, other).pairs.size(), 25u);
}

// The gradients that the table's nodes compute are those that Tenon derives by itself.
TEST(TensorScope, GradientsAgreeWithDifferentiate) {
  const Table table = read_table(small_step);
  const Graph graph = import_graph(table, reconstruct(table), small_step);
  const std::vector<Datum> got = reference::evaluate(graph, {});

  Builder b;
  std::vector<Datum> inputs;
  const auto weight = [&](const char* name, const Shape& shape, std::int64_t fan_in,
                          const char* layout) {
    inputs.emplace_back(seeded_weight(DType::F32, shape, name, fan_in).materialise());
    return b.input(name, TensorType{DType::F32, Dims(shape.begin(), shape.end()), Layout(layout)});
  };
  const Var images = weight("images", {2, 9, 9, 3}, 2, "NHWC");
  const Var w1 = weight("conv1/weights", {3, 3, 3, 4}, 27, "HWIO"),
            b1 = weight("conv1/biases", {4}, 0, "");
  const Var w2 = weight("conv2/weights", {3, 3, 4, 6}, 36, "HWIO"),
            b2 = weight("conv2/biases", {6}, 0, "");
  Var x =
      b.call("conv", {images, w1}, {{"strides", Attr::Integers{2, 2}}, {"auto_pad", "same_upper"}});
  x = b.call("relu", {x + b1});
  x = b.call("lrn", {x}, {{"size", 5}, {"alpha", 5e-4}, {"beta", 0.75}, {"bias", 2.0}});
  x = b.call("max_pool", {x},
             {{"kernel_shape", Attr::Integers{2, 2}}, {"strides", Attr::Integers{2, 2}}});
  x = b.call("relu", {b.call("conv", {x, w2}, {{"auto_pad", "same_upper"}}) + b2});
  const Var loss = b.call("reduce_sum", {x * x}) * 0.5;
  for (const Var gradient : differentiate(b, loss, {b1, w1, b2, w2})) b.output(gradient);
  const std::vector<Datum> expected = reference::evaluate(b.take(), inputs);

  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    const std::vector<double> a = got[k].tensor().reals(), e = expected[k].tensor().reals();
    ASSERT_EQ(a.size(), e.size());
    double largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_NEAR(a[i], e[i], 1e-5 * (1 + std::abs(e[i]))) << k << " " << i;
      largest = std::max(largest, std::abs(e[i]));
    }
    EXPECT_GT(largest, 0.01) << k;  // nothing is compared with zeros
  }
}

TEST(TensorScope, ReadsAStepOnTwoDevices) {
  const Table table = read_table(two_gpus);
  const Step step = reconstruct(table);
  EXPECT_EQ(count_kind(table, RowKind::Copy), 6u);
  EXPECT_EQ(count_kind(table, RowKind::Feed), 2u);
  const Row& add = table.rows[static_cast<std::size_t>(table.find_node("global_step/add"))];
  EXPECT_EQ(add.controls, (std::vector<std::string>{"loss/Mul"}));
  EXPECT_EQ(add.inputs.size(), 2u);
  EXPECT_EQ(to_string(add.outputs.at(0)), "int64 1");
  // Three tensors have the shape; only this one was copied to the other GPU.
  EXPECT_EQ(sources_of(table, step, "fc/Reshape"),
            (std::vector<std::string>{"scaled/Mul", "fc/Reshape/shape"}));
  EXPECT_EQ(sources_of(table, step, "scaled/Mul"),
            (std::vector<std::string>{"conv1", "_arg_keep_0_1"}));
  EXPECT_EQ(sources_of(table, step, "loss/Mul"),
            (std::vector<std::string>{"loss/Mean", "loss/scale"}));
  EXPECT_EQ(sources_of(table, step, "global_step/add"),
            (std::vector<std::string>{"global_step/read", "global_step/one"}));
  const Graph graph = import_graph(table, step, two_gpus);
  ASSERT_EQ(graph.inputs().size(), 2u);
  EXPECT_EQ(to_string(graph.value(graph.inputs()[0]).type), "u8[4, 8, 8, 3]@NHWC");
  EXPECT_EQ(to_string(graph.value(graph.inputs()[1]).type), "f16[]");
  EXPECT_EQ(graph.outputs().size(), 3u);
  EXPECT_EQ(graph.metadata.at("tensorscope.device.conv1"), "GPU:0");
  const Tensor images = Constant::uniform(DType::U8, {4, 8, 8, 3}, 1, 0, 9).materialise();
  const std::vector<Datum> results =
      reference::evaluate(graph, {Datum(images), Datum(Tensor::scalar(DType::F16, 0.5))});
  EXPECT_EQ(results[0].tensor().shape(), (Shape{4, 10}));
  double sum = 0;
  for (const double probability : results[0].tensor().reals()) sum += probability;
  EXPECT_NEAR(sum, 4, 0.02);  // a row of probabilities for each image
}

// Every network is written, read again the same, and each of its nodes has a row with its shape.
TEST(TensorScope, EveryNetworkOfTheZooHasATable) {
  for (const zoo::Network& network : zoo::networks()) {
    const Graph graph = zoo::build(network.name);
    const Table table = export_table(graph);
    const std::string text = print_table(table);
    const Table again = parse_table(text, network.name);
    EXPECT_EQ(print_table(again), text) << network.name;
    for (std::size_t k = 0; k < again.rows.size(); ++k) {
      EXPECT_EQ(again.rows[k].inputs, table.rows[k].inputs) << print_row(table.rows[k]);
      EXPECT_EQ(again.rows[k].outputs, table.rows[k].outputs) << print_row(table.rows[k]);
    }
    std::size_t missing = 0;
    for (const NodeId id : graph.nodes_in_order()) {
      const Node& node = graph.node(id);
      if (node.results.empty() || !node.results[0]) continue;
      const std::string& name = node.name.empty() ? graph.value(node.results[0]).name : node.name;
      missing += again.find_node(name) < 0;
    }
    // Shapes of biases, bounds of relu6, and names that say another operator.
    EXPECT_LE(missing, 8u) << network.name;
    reconstruct(again);
  }
}

// Chains whose names and shapes tell everything come back with the same edges.
TEST(TensorScope, EdgesSurviveWhereNamesAndShapesTell) {
  for (const char* spec : {"alexnet", "alexnet?layout=NCHW", "mlp", "vgg16"}) {
    const Graph graph = zoo::build(spec);
    const Table table = export_table(graph);
    const Step step = reconstruct(table);
    for (const NodeId id : graph.nodes_in_order()) {
      const ValueId result = graph.node(id).results[0];
      const std::int64_t row = table.find_node(graph.value(result).name);
      if (row < 0 || graph.constant_of(result) != nullptr || graph.op_name(id) == "conv") continue;
      const std::vector<std::string> sources = sources_of(table, step, graph.value(result).name);
      const ValueId operand = graph.node(id).operands[0];
      const std::string expected = graph.value(operand).producer
                                       ? graph.value(operand).name
                                       : concat("_arg_", graph.value(operand).name, "_0_0");
      EXPECT_EQ(sources.at(0), expected) << spec << " " << graph.value(result).name;
    }
    EXPECT_EQ(mismatches_of(check_table(table, step)), "") << spec;
    const Graph again = import_graph(table, step, spec);
    const auto type = [](const Graph& of) { return of.value(of.outputs()[0]).type.tensor().dims; };
    EXPECT_EQ(type(again), type(graph)) << spec;
  }
}

TEST(TensorScope, WritesWhatTensorFlowWouldHaveWritten) {
  const Graph graph = zoo::build("alexnet?form=torch,size=63,dense=0");
  const std::set<std::string> lines = lines_of(print_table(export_table(graph)));
  for (const char* line :
       {"_arg_x_0_0, (1), (1x3x63x63), CPU, 0",
        "edge_1__arg_x_0_0:MEMCPYHtoD, (no input), (output 47628 bytes), GPU, 0",
        // TensorFlow pads by itself only as SAME does.
        "conv1/Conv2D/Pad, (1x3x63x63), (int32 4x2), (1x3x67x67), GPU, 0",
        "conv1/Conv2D, (1x3x67x67), (11x11x3x64), (1x64x15x15), GPU, 0",
        "conv1/BiasAdd, (1x64x15x15), (64x1), (1x64x15x15), GPU, 0",
        "conv1/BiasAdd:BiasAdd, (no input), (no output), GPU, 0",
        "conv1/weights, (1), (11x11x3x64), GPU, 0", "_SOURCE, (1), (no output), GPU, 0"}) {
    EXPECT_TRUE(lines.contains(line)) << line;
  }
  Graph on_cpu = zoo::build("mlp");
  on_cpu.metadata["tensorscope.device"] = "CPU:0";
  const Table table = export_table(on_cpu);
  EXPECT_EQ(count_kind(table, RowKind::Stream), 0u);
  EXPECT_EQ(count_kind(table, RowKind::Copy), 0u);
  EXPECT_THROW(export_table(zoo::build("mlp?batch=N")), Error);
}

struct Hostile {
  const char* name;
  std::string text;
  const char* part;   ///< of the message
  const char* place;  ///< line and column
};

std::vector<Hostile> hostile_tables() {
  const std::string good = "a, (1), (2x1), CPU, 0\n";
  std::string wide = "a, (1), (";
  for (int k = 0; k < 300; ++k) wide += "1x";
  return {
      {"empty", "", "the table has no rows", "line 1, column 1"},
      {"unfinished", "a, (1), (2x1), CPU, 0", "the last row does not end", "line 1, column 22"},
      {"cut", good + "b, (1), (2x", "the last row does not end", "line 2, column 12"},
      {"few fields", good + "b, (1), CPU, 0\n", "a row has too few fields", "line 2, column 15"},
      {"empty line", good + "\nb, (1), (2x1), CPU, 0\n", "a line is empty", "line 2, column 1"},
      {"carriage return", "a, (1), (2x1), CPU, 0\r\n", "carriage return", "line 1, column 22"},
      {"empty field", "a, , (2x1), CPU, 0\n", "a field is empty", "line 1, column 4"},
      {"no device", "a, (1), (2x1), gpu, 0\n", "the device has no type", "line 1, column 16"},
      {"bad index", "a, (1), (2x1), CPU, x\n", "the device's index", "line 1, column 21"},
      {"huge index", "a, (1), (2x1), CPU, 99999999999999999999\n", "the device's index",
       "line 1, column 21"},
      {"leading zero", "a, (1), (02x1), CPU, 0\n", "an extent", "line 1, column 10"},
      {"negative", "a, (1), (-2x1), CPU, 0\n", "an extent", "line 1, column 10"},
      {"no digits", "a, (1), (2x), CPU, 0\n", "an extent", "line 1, column 12"},
      {"single extent", "a, (1), (2), CPU, 0\n", "a shape has a single extent",
       "line 1, column 10"},
      {"large", "a, (1), (4294967296x4294967296), CPU, 0\n", "a shape is too large",
       "line 1, column 21"},
      {"large behind zero", "a, (1), (0x4294967296x4294967296), CPU, 0\n", "too large",
       "line 1, column 23"},
      {"deep", wide + "1), CPU, 0\n", "a shape is too large", "line 1,"},
      {"no parentheses", "a, (1), 2x1, CPU, 0\n", "not a shape", "line 1, column 9"},
      {"element", "a, (1), (int33 2x1), CPU, 0\n", "no element type", "line 1, column 10"},
      {"float32", "a, (1), (float32 2x1), CPU, 0\n", "no element type", "line 1, column 10"},
      {"name", "a b, (1), (2x1), CPU, 0\n", "a character that TensorFlow does not allow",
       "line 1, column 2"},
      {"twice", good + good, "two rows are called 'a'", "line 2, column 1"},
      {"unsorted", "b, (1), (2x1), CPU, 0\n" + good, "not sorted by name", "line 2, column 1"},
      {"control edge", good + "b, ^c, (2x1), CPU, 0\n", "a control edge comes from 'c'",
       "line 2, column 5"},
      {"circle", "a, ^b, (2x1), CPU, 0\nb, ^a, (2x1), CPU, 0\n", "control edges run in a circle",
       "line 1, column 5"},
      {"own circle", "a, ^a, (2x1), CPU, 0\n", "control edges run in a circle", "line 1, column 5"},
      {"data behind control", good + "b, ^a, (2x1), ^a, (2x1), CPU, 0\n",
       "a control edge stands behind", "line 2, column 15"},
      {"stream", good + "b:Relu, (no input), (no output), GPU, 0\n", "a stream's row is of 'b'",
       "line 2, column 1"},
      {"stream's shape", good + "a:Relu, (2x1), (no output), GPU, 0\n",
       "a stream's row has tensors", "line 2, column 1"},
      {"fetch", "_retval_b_0_0, (2x1), (no output), CPU, 0\n" + good, "a fetch is of 'b'",
       "line 1, column 1"},
      {"fetch without number", "_retval_b, (2x1), (no output), CPU, 0\n" + good, "port and number",
       "line 1, column 1"},
      {"fetch of nothing", "_retval_a_0_0, (1), (2x1), CPU, 0\n" + good,
       "a fetch does not have one input", "line 1, column 1"},
      {"huge port", "_retval_a_99999999999999999999_0, (2x1), (no output), CPU, 0\n" + good,
       "the port", "line 1, column 11"},
      {"copy", good + "edge_1_b:MEMCPYDtoH, (no input), (output 8 bytes), GPU, 0\n",
       "a copy is of 'b'", "line 2, column 1"},
      {"copy's kind", good + "edge_1_a:MEMCPYDtoX, (no input), (output 8 bytes), GPU, 0\n",
       "no copy is of that kind", "line 2, column 16"},
      {"copy's bytes", good + "edge_1_a:MEMCPYDtoH, (no input), (output x bytes), GPU, 0\n",
       "the bytes of a copy", "line 2, column 42"},
      {"copy's edge", good + "edge_x_a:MEMCPYDtoH, (no input), (output 8 bytes), GPU, 0\n",
       "the edge of a copy", "line 2, column 6"},
      {"copy's shape", good + "edge_1_a:MEMCPYDtoH, (2x1), (no output), GPU, 0\n",
       "a copy does not just tell its bytes", "line 2, column 1"},
      {"no inputs told", good + "b, (2x1), CPU, 0, 0\n", "the device has no type",
       "line 2, column 16"},
      {"no outputs", good + "b, ^a, ^a, CPU, 0\n", "a row has no outputs", "line 2, column 1"},
      {"two ends", good + "b, (1), (no output), (2x1), CPU, 0\n", "(no output) is not the last",
       "line 2, column 9"},
      {"feed", "_arg_x_0_0, (2x1), (no output), CPU, 0\n", "a feed does not have one output",
       "line 1, column 1"},
  };
}

TEST(TensorScope, RefusesWhatIsNoTable) {
  for (const Hostile& hostile : hostile_tables()) {
    try {
      read_document(hostile.text);
      ADD_FAILURE() << hostile.name << ": an error was expected";
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(hostile.part), std::string::npos) << hostile.name << ": " << message;
      EXPECT_NE(error.place().find(hostile.place), std::string::npos)
          << hostile.name << ": " << message;
    }
  }
}

TEST(TensorScope, EveryPrefixIsRefusedOrWhole) {
  const std::string text = read_fixture(small_step);
  for (std::size_t length = 0; length < text.size(); length += 7) {
    const std::string prefix = text.substr(0, length);
    try {
      EXPECT_EQ(read_document(prefix)->text(""), prefix);
    } catch (const Error& error) {
      EXPECT_NE(error.place().find("line "), std::string::npos);
    }
  }
}

TEST(TensorScope, ListsEverythingThatItCannotImport) {
  const std::string text =
      "a, (1), (resource 1), GPU, 0\nb, (2x2), (2x2), GPU, 0\nb:Fancy, (no input), (no output), "
      "GPU, 0\n"
      "c, (2x2), (2x2), GPU, 0\nc:Fancy, (no input), (no output), GPU, 0\nd, (2x3), (2x2), (4x4), "
      "GPU, 0\n";
  try {
    read_document(text)->graph();
    FAIL() << "an error was expected";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
    const std::string message = error.what();
    EXPECT_NE(message.find("3 things are not supported"), std::string::npos) << message;
    EXPECT_NE(message.find("Fancy (2 times)"), std::string::npos) << message;
  }
}

TEST(TensorScope, WhatNothingMakesIsAnInput) {
  const std::string text =
      "_retval_conv1_0_0, (1x4x4x8), (no output), CPU, 0\nconv1, (1x4x4x8), (1x4x4x8), CPU, 0\n"
      "conv1/Conv2D, (1x8x8x3), (3x3x3x8), (1x4x4x8), CPU, 0\nconv1/weights, (1), (3x3x3x8), CPU, "
      "0\n";
  const auto document = read_document(text);
  const Graph graph = document->graph();
  ASSERT_EQ(graph.inputs().size(), 1u);
  EXPECT_EQ(graph.value(graph.inputs()[0]).name, "conv1/Conv2D/input_0");
  EXPECT_NE(section_text(document->describe()).find("becomes an input of the graph"),
            std::string::npos);
  // And that is a finding: a table has a row for everything that is read.
  EXPECT_EQ(document->check().mismatches().size(), 1u);
}

// A chain as deep as networks get, and as wide: nothing is quadratic, nothing recurses.
TEST(TensorScope, TakesLongTables) {
  std::vector<std::string> lines{"in, (1), (8x8), GPU, 0"};
  for (int k = 10000; k < 20000; ++k) {
    lines.push_back(concat("n", k, ", (8x8), (8x8), GPU, 0"));
    lines.push_back(concat("n", k, ":Relu, (no input), (no output), GPU, 0"));
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  const auto document = read_document(text);
  EXPECT_EQ(document->text(""), text);
  EXPECT_LE(document->check().mismatches().size(), 1u);  // nobody reads the last
  EXPECT_EQ(document->graph().node_count(), 10001u);
}

// Bytes changed at random: an Error, or a document with all its functions.
TEST(TensorScope, SurvivesDamage) {
  std::mt19937 random(7);
  const DocumentFormat& format = *find_document_format("tensorscope");
  for (const char* fixture : {small_step, two_gpus}) {
    const std::string text = read_fixture(fixture);
    for (int k = 0; k < 1500; ++k) {
      std::string damaged = text;
      const int changes = 1 + static_cast<int>(random() % 3);
      for (int change = 0; change < changes; ++change) {
        const std::size_t at = random() % damaged.size();
        const std::string_view letters = "0123456789x(),: ^/_abGC\n-";
        switch (random() % 3) {
          case 0:
            damaged[at] = letters[random() % letters.size()];
            break;
          case 1:
            damaged.erase(at, 1 + random() % 4);
            break;
          default:
            damaged.insert(at, 1, letters[random() % letters.size()]);
            break;
        }
      }
      try {
        const auto document = format.read(damaged, "damaged");
        EXPECT_EQ(document->text(""), damaged);
        document->check();
        document->describe();
        format.from_graph(document->graph())->text("");
      } catch (const Error&) {
      }
    }
  }
}

}  // namespace
}  // namespace tenon::tensorscope
