#include "autodiff/differentiate.h"
#include "documents/seeded_weight.h"
#include "documents/tensorscope/import.h"
#include "documents/tensorscope/names.h"
#include "documents/tensorscope/windows.h"
#include "ir/verify.h"
#include "reference/evaluate.h"
#include "unit/documents/tensorscope_tables.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <map>

namespace tenon::documents::tensorscope::tensorscope_test {
namespace {

TEST(TensorScope, RoundTripsByteForByte) {
  for (const char* fixture : {alexnet, two_gpus, small_step}) {
    const std::string text = read_fixture(fixture);
    EXPECT_EQ(read_document(text)->text(""), text) << fixture;
    EXPECT_TRUE(documents::find_document_format("tensorscope")->recognises(text.substr(0, 4096)));
  }
  EXPECT_THROW(read_document(read_fixture(alexnet))->text("later"), Error);
}

TEST(TensorScope, RecognisesOnlyItsFormat) {
  for (const char* other :
       {"aitemplate_conv_add.graph.txt", "megengine_resnet50.profile.json",
        "resnet50_v1.before.relay", "resnet50_v1.after.relay", "unet_chainer.graph.txt"}) {
    const std::string text = read_fixture(other).substr(0, 4096);
    EXPECT_FALSE(documents::find_document_format("tensorscope")->recognises(text)) << other;
  }
  EXPECT_FALSE(documents::find_document_format("tensorscope")
                   ->recognises("graph (x: f32[2]) {\n  return x\n}\n"));
  EXPECT_FALSE(documents::find_document_format("tensorscope")
                   ->recognises("a, (b), c\nsome, (other) text, 3\n"));
}

TEST(TensorScope, RowsOfTheSpecification) {
  const TensorScopeTable table = read_table(alexnet);
  const DataFlow step = reconstruct(table);
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

// Operands of the nodes in AlexNet's training step.
TEST(TensorScope, DataFlowOfAlexNet) {
  const TensorScopeTable table = read_table(alexnet);
  const DataFlow step = reconstruct(table);
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
      // The layout optimiser's transposes.
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
    for (const DataSource& source : step.sources[at])
      EXPECT_TRUE(is_made[static_cast<std::size_t>(source.row)]);
    is_made[at] = 1;
  }
}

TEST(TensorScope, WindowsOfAlexNet) {
  const TensorScopeTable table = read_table(alexnet);
  const DataFlow step = reconstruct(table);
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

TEST(TensorScope, PassesItsCheck) {
  for (const char* fixture : {alexnet, two_gpus, small_step}) {
    const documents::Findings findings = read_document(read_fixture(fixture))->check();
    EXPECT_EQ(mismatches_of(findings), "") << fixture;
    EXPECT_GE(findings.kinds().size(), 10u);
  }
  std::map<std::string, std::size_t> claims;
  const documents::Findings findings = read_document(read_fixture(alexnet))->check();
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

TEST(TensorScope, CheckReportsPositionStatedAndExpectedValue) {
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

// Numbers that the document determines. Excluded are layer numbers, which are names, and the
// numbers of edges and consumers in the transposes' names, which come from TensorFlow's node
// numbering and from the iteration order of a set.
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

TEST(TensorScopeMutation, FindsChangedNumbers) {
  for (const char* fixture : {alexnet, two_gpus}) {
    const std::string text = read_fixture(fixture);
    const MutationResult result = mutate_numbers(
        "tensorscope", text,
        [&](const NumberInText& number) { return checkable_field(text, number); },
        fixture == alexnet ? 110 : 40);
    EXPECT_GT(result.share(), 0.95);
    EXPECT_GE(result.first * 10, result.tried * 9);
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

TEST(TensorScope, GraphOfAlexNetVerifies) {
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

// The gradients in the table equal those that Tenon derives.
TEST(TensorScope, GradientsMatchDifferentiate) {
  const TensorScopeTable table = read_table(small_step);
  const Graph graph = import_graph(table, reconstruct(table), small_step);
  const std::vector<Datum> got = reference::evaluate(graph, {});

  Builder b;
  std::vector<Datum> inputs;
  const auto weight = [&](const char* name, const Shape& shape, std::int64_t fan_in,
                          const char* layout) {
    inputs.emplace_back(documents::seeded_weight(DType::F32, shape, name, fan_in).materialise());
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
    EXPECT_GT(largest, 0.01) << k;  // the comparison is not between zeros
  }
}

// A layer with two readers, whose gradients are added, and a step of gradient descent.
TEST(TensorScope, AddsGradientsOfSeveralPaths) {
  const std::string text =
      "GradientDescent/learning_rate, (1), (1), CPU, 0\n"
      "GradientDescent/update_fc/weights/ApplyGradientDescent, (4x3), (1), (4x3), (4x3), CPU, 0\n"
      "_arg_x_0_0, (1), (8x4), CPU, 0\n"
      "_retval_GradientDescent/update_fc/weights/ApplyGradientDescent_0_0, (4x3), (no output), "
      "CPU, 0\n"
      "fc/MatMul, (8x4), (4x3), (8x3), CPU, 0\n"
      "fc/Relu, (8x3), (8x3), CPU, 0\n"
      "fc/weights, (1), (4x3), CPU, 0\n"
      "fc/weights/read, (4x3), (4x3), CPU, 0\n"
      "gradients/AddN, (8x3), (8x3), (8x3), CPU, 0\n"
      "gradients/fc/MatMul_grad/MatMul_1, (8x4), (8x3), (4x3), CPU, 0\n"
      "gradients/fc/Relu_grad/ReluGrad, (8x3), (8x3), (8x3), CPU, 0\n"
      "gradients/p/MatMul_grad/MatMul, (8x5), (3x5), (8x3), CPU, 0\n"
      "gradients/q/MatMul_grad/MatMul, (8x5), (3x5), (8x3), CPU, 0\n"
      "p/MatMul, (8x3), (3x5), (8x5), CPU, 0\n"
      "p/weights, (1), (3x5), CPU, 0\n"
      "p/weights/read, (3x5), (3x5), CPU, 0\n"
      "q/MatMul, (8x3), (3x5), (8x5), CPU, 0\n"
      "q/weights, (1), (3x5), CPU, 0\n"
      "q/weights/read, (3x5), (3x5), CPU, 0\n"
      "sum/Add, (8x5), (8x5), (8x5), CPU, 0\n";
  const TensorScopeTable table = parse_table(text, "descent");
  const DataFlow step = reconstruct(table);
  using Names = std::vector<std::string>;
  EXPECT_EQ(sources_of(table, step, "p/MatMul"), (Names{"fc/Relu", "p/weights/read"}));
  EXPECT_EQ(sources_of(table, step, "q/MatMul"), (Names{"fc/Relu", "q/weights/read"}));
  EXPECT_EQ(sources_of(table, step, "gradients/AddN"),
            (Names{"gradients/p/MatMul_grad/MatMul", "gradients/q/MatMul_grad/MatMul"}));
  EXPECT_EQ(sources_of(table, step, "gradients/fc/Relu_grad/ReluGrad"),
            (Names{"gradients/AddN", "fc/Relu"}));
  EXPECT_EQ(sources_of(table, step, "gradients/fc/MatMul_grad/MatMul_1"),
            (Names{"_arg_x_0_0", "gradients/fc/Relu_grad/ReluGrad"}));
  EXPECT_EQ(
      sources_of(table, step, "GradientDescent/update_fc/weights/ApplyGradientDescent"),
      (Names{"fc/weights", "GradientDescent/learning_rate", "gradients/fc/MatMul_grad/MatMul_1"}));
  const std::vector<Datum> results = reference::evaluate(import_graph(table, step, "descent"),
                                                         {Datum(Tensor(DType::F32, {8, 4}))});
  EXPECT_EQ(results.at(0).tensor().shape(), (Shape{4, 3}));
}

// Gradient operators of TensorFlow that Tenon composes: a clipped feature has a zero gradient.
TEST(TensorScope, Relu6AndRsqrtGradients) {
  const std::string text =
      "_arg_dy_0_1, (1), (6x1), CPU, 0\n"
      "_arg_x_0_0, (1), (6x1), CPU, 0\n"
      "_retval_gradients/fc/Relu6_grad/Relu6Grad_0_0, (6x1), (no output), CPU, 0\n"
      "fc/Relu6, (6x1), (6x1), CPU, 0\n"
      "fc/Rsqrt, (6x1), (6x1), CPU, 0\n"
      "gradients/fc/Relu6_grad/Relu6Grad, (6x1), (6x1), (6x1), CPU, 0\n"
      "gradients/fc/Rsqrt_grad/RsqrtGrad, (6x1), (6x1), (6x1), CPU, 0\n";
  const TensorScopeTable table = parse_table(text, "clipped");
  const DataFlow step = reconstruct(table);
  using Names = std::vector<std::string>;
  ASSERT_EQ(sources_of(table, step, "gradients/fc/Relu6_grad/Relu6Grad"),
            (Names{"gradients/fc/Rsqrt_grad/RsqrtGrad", "fc/Relu6"}));
  ASSERT_EQ(sources_of(table, step, "gradients/fc/Rsqrt_grad/RsqrtGrad"),
            (Names{"fc/Rsqrt", "_arg_dy_0_1"}));
  const Graph graph = import_graph(table, step, "clipped");
  const std::vector<double> x = {0.25, 1, 4, 5.5, 6, 9}, dy = {1, 2, -3, 1, 5, 7};
  std::vector<Datum> inputs;
  for (const ValueId input : graph.inputs()) {
    const bool is_x = graph.value(input).name.find('x') != std::string::npos;
    inputs.emplace_back(Tensor::of(DType::F32, {6}, is_x ? x : dy));
  }
  const Tensor dx = reference::evaluate(graph, inputs).at(0).tensor();
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double slope = x[k] < 6 ? -0.5 * std::pow(x[k], -1.5) : 0;
    EXPECT_NEAR(dx.real_at(static_cast<std::int64_t>(k)), dy[k] * slope, 1e-5) << x[k];
  }
}

TEST(TensorScope, StepOnTwoDevices) {
  const TensorScopeTable table = read_table(two_gpus);
  const DataFlow step = reconstruct(table);
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

}  // namespace
}  // namespace tenon::documents::tensorscope::tensorscope_test
