#include "frontends/onnx/export.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"
#include "unit/frontends/onnx_model.h"

#include <gtest/gtest.h>

namespace tenon::frontends::onnx::testing_models::contraction_test {
namespace {

struct Input {
  std::string name;
  std::vector<std::string> dims;
  int element = TensorProto::FLOAT;
};

using Integers = std::vector<std::int64_t>;
struct NodeAttr {
  std::string name;
  std::variant<std::int64_t, float, std::string, Integers> value;
};

void set_value(onnx_schema::AttributeProto& attr, std::int64_t value) {
  attr.set_type(onnx_schema::AttributeProto::INT);
  attr.set_i(value);
}
void set_value(onnx_schema::AttributeProto& attr, float value) {
  attr.set_type(onnx_schema::AttributeProto::FLOAT);
  attr.set_f(value);
}
void set_value(onnx_schema::AttributeProto& attr, const std::string& value) {
  attr.set_type(onnx_schema::AttributeProto::STRING);
  attr.set_s(value);
}
void set_value(onnx_schema::AttributeProto& attr, const Integers& values) {
  attr.set_type(onnx_schema::AttributeProto::INTS);
  attr.mutable_ints()->Assign(values.begin(), values.end());
}

struct NodeText {
  std::string op_type;
  std::vector<std::string> inputs, outputs;
  std::vector<NodeAttr> attrs = {};
};

/// A model of one node, whose outputs are the graph's.
ModelProto one_node(int opset, const std::vector<Input>& inputs, const NodeText& text) {
  ModelProto model = new_model(opset);
  GraphProto& graph = *model.mutable_graph();
  for (const Input& input : inputs) add_input(graph, input.name, input.dims, input.element);
  NodeProto& node = add_node(graph, text.op_type, text.inputs, text.outputs);
  for (const NodeAttr& attr : text.attrs) {
    auto& written = *node.add_attribute();
    written.set_name(attr.name);
    std::visit([&](const auto& value) { set_value(written, value); }, attr.value);
  }
  for (const std::string& output : text.outputs) add_output(graph, output);
  return model;
}

/// The lines between the graph's inputs and its outputs, or the error.
std::string lines(const ModelProto& model) {
  const std::string text = imported(model);
  const std::size_t begin = text.find('\n') + 1, end = text.find("  return");
  return end == std::string::npos ? text : text.substr(begin, end - begin);
}

std::vector<std::vector<double>> run(const Graph& graph, const std::vector<Tensor>& inputs) {
  std::vector<std::vector<double>> results;
  for (const Datum& result : reference::evaluate(graph, {inputs.begin(), inputs.end()})) {
    results.push_back(result.tensor().reals());
  }
  return results;
}

Tensor numbers(Shape shape, const std::vector<double>& values) {
  return Tensor::of(DType::F32, std::move(shape), values);
}

TEST(Contraction, DecomposesGemm) {
  const ModelProto model =
      one_node(7, {{"a", {"3", "2"}}, {"b", {"3", "4"}}, {"c", {"4"}}},
               {"Gemm", {"a", "b", "c"}, {"y"}, {{"transA", std::int64_t{1}}, {"alpha", 0.5F}}});
  EXPECT_EQ(lines(model),
            "  transpose = transpose(a) {perm = [1, 0]}\n"
            "  matmul = matmul(transpose, b)\n"
            "  constant = constant f32[] 0.5\n"
            "  mul = mul(matmul, constant)\n"
            "  y = add(mul, c)\n");
}

TEST(Contraction, AutoPadOverridesPads) {
  const ModelProto model = one_node(1, {{"x", {"1", "1", "H", "8"}}},
                                    {"MaxPool",
                                     {"x"},
                                     {"y"},
                                     {{"kernel_shape", Integers{3, 3}},
                                      {"pads", Integers{1, 1, 1, 1}},
                                      {"auto_pad", std::string("SAME_UPPER")}}});
  EXPECT_EQ(lines(model), "  y = max_pool(x) {kernel_shape = [3, 3], auto_pad = same_upper}\n");
}

TEST(Contraction, OutputShapesMayNameBatchAndChannels) {
  const ModelProto model = one_node(
      11, {{"x", {"1", "1", "3"}}, {"w", {"1", "1", "3"}}},
      {"ConvTranspose",
       {"x", "w"},
       {"y"},
       {{"strides", Integers{2}}, {"pads", Integers{7, 7}}, {"output_shape", Integers{1, 1, 6}}}});
  EXPECT_EQ(lines(model), "  y = conv_transpose(x, w) {output_shape = [6], strides = [2]}\n");
}

TEST(Contraction, Int8WithoutZeroPoints) {
  const ModelProto model =
      one_node(10, {{"a", {"2", "3"}, TensorProto::UINT8}, {"b", {"3", "2"}, TensorProto::INT8}},
               {"MatMulInteger", {"a", "b"}, {"y"}});
  EXPECT_EQ(lines(model), "  y = matmul(a, b) {out_dtype = i32}\n");
}

TEST(Contraction, ZeroPointsPerWeightChannel) {
  const ModelProto model = one_node(10,
                                    {{"x", {"1", "1", "2"}, TensorProto::UINT8},
                                     {"w", {"2", "1", "1"}, TensorProto::UINT8},
                                     {"wz", {"2"}, TensorProto::UINT8}},
                                    {"ConvInteger", {"x", "w", "", "wz"}, {"y"}});
  const auto bytes = [](Shape shape, const std::vector<int>& values) {
    return Tensor::of(DType::U8, std::move(shape), values);
  };
  const auto results = run(import_model(model), {bytes({1, 1, 2}, {1, 200}),
                                                 bytes({2, 1, 1}, {5, 5}), bytes({2}, {3, 10})});
  EXPECT_EQ(results.front(), (std::vector<double>{2, 400, -5, -1000}));
}

// Without a past the sequence starts from zeros; the new state is the last inputs.
TEST(Contraction, CausalConvolutionWithState) {
  const ModelProto fresh = one_node(27, {{"x", {"1", "1", "3"}}, {"w", {"1", "1", "3"}}},
                                    {"CausalConvWithState", {"x", "w"}, {"y", "state"}});
  const Tensor x = numbers({1, 1, 3}, {1, 2, 3}), w = numbers({1, 1, 3}, {100, 10, 1});
  const auto first = run(import_model(fresh), {x, w});
  EXPECT_EQ(first[0], (std::vector<double>{1, 12, 123}));
  EXPECT_EQ(first[1], (std::vector<double>{2, 3}));

  const ModelProto going_on =
      one_node(27, {{"x", {"1", "1", "1"}}, {"w", {"1", "1", "3"}}, {"past", {"1", "1", "2"}}},
               {"CausalConvWithState", {"x", "w", "", "past"}, {"y", "state"}});
  const auto second =
      run(import_model(going_on), {numbers({1, 1, 1}, {4}), w, numbers({1, 1, 2}, {2, 3})});
  EXPECT_EQ(second[0], (std::vector<double>{234}));
  EXPECT_EQ(second[1], (std::vector<double>{3, 4}));
}

TEST(Contraction, GlobalPoolsAreReductions) {
  const std::vector<Input> image{{"x", {"2", "3", "4", "5"}}};
  EXPECT_EQ(lines(one_node(1, image, {"GlobalAveragePool", {"x"}, {"y"}})),
            "  y = reduce_mean(x) {axes = [2, 3]}\n");
  EXPECT_EQ(lines(one_node(2, image, {"GlobalLpPool", {"x"}, {"y"}})),
            "  y = reduce_l2(x) {axes = [2, 3]}\n");
}

// The exported model must compute the same for any layouts of the graph.
void expect_same_after_export(const std::string& text, const std::vector<Tensor>& inputs) {
  const Graph graph = parse_graph(text, all_ops());
  const std::string bytes = export_onnx(graph, ExportOptions{});
  const Graph back = import_onnx(std::as_bytes(std::span(bytes)), {}, "m.onnx");
  EXPECT_EQ(run(graph, inputs), run(back, inputs)) << text;
}

TEST(Contraction, ExportInsertsTransposes) {
  const Tensor image = numbers({1, 2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const Tensor weights = numbers({1, 2, 2, 3}, {1, 0, 2, 1, 1, 0, 3, 1, 0, 1, 2, 1});
  expect_same_after_export(
      "graph (x: f32[1, 2, 3, 2]@NHWC, w: f32[1, 2, 2, 3]@HWIO) {\n"
      "  y = conv(x, w) {pads = [0, 1, 0, 0], strides = [1, 2]}\n"
      "  return y\n}\n",
      {image, weights});
  expect_same_after_export(
      "graph (x: f32[1, 2, 3, 2]@NHWC) {\n"
      "  y, at = max_pool(x) {kernel_shape = [2, 2], index_order = column_major}\n"
      "  return y, at\n}\n",
      {image});
}

TEST(Contraction, GradientsOfConvolutionsExportAsConvolutions) {
  const Tensor dy = numbers({1, 1, 2}, {1, 10}), w = numbers({1, 1, 2}, {2, 3});
  expect_same_after_export(
      "graph (dy: f32[1, 1, 2], w: f32[1, 1, 2]) {\n"
      "  dx = conv_transpose(dy, w) {strides = [2], pads = [1, 0], output_shape = [4]}\n"
      "  return dx\n}\n",
      {dy, w});
  expect_same_after_export(
      "graph (x: f32[1, 1, 4], dy: f32[1, 1, 2]) {\n"
      "  dw = conv_weight_gradient(x, dy) {kernel_shape = [1], strides = [2]}\n"
      "  return dw\n}\n",
      {numbers({1, 1, 4}, {1, 2, 3, 4}), dy});
}

}  // namespace
}  // namespace tenon::frontends::onnx::testing_models::contraction_test
