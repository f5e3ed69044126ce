// Self-contradictory models: each is refused with the stated and the inferred value.
#include "unit/frontends/onnx_model.h"

#include <gtest/gtest.h>

namespace tenon::frontends::onnx::testing_models::contradictions_test {
namespace {

std::string refusal_of(const ModelProto& model) {
  try {
    import_model(model);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

ModelProto relu_model() {
  ModelProto model = new_model();
  add_input(*model.mutable_graph(), "x", {"2", "3"});
  add_node(*model.mutable_graph(), "Relu", {"x"}, {"y"}, "act");
  return model;
}

ModelProto conv_model(const std::vector<std::int64_t>& kernel_shape) {
  ModelProto model = new_model();
  GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {"1", "2", "5", "5"});
  add_input(graph, "w", {"4", "2", "3", "3"});
  NodeProto& node = add_node(graph, "Conv", {"x", "w"}, {"y"}, "conv");
  auto& attr = *node.add_attribute();
  attr.set_name("kernel_shape");
  attr.set_type(onnx_schema::AttributeProto::INTS);
  attr.mutable_ints()->Assign(kernel_shape.begin(), kernel_shape.end());
  add_output(graph, "y");
  return model;
}

TEST(OnnxContradictions, OutputTypes) {
  ModelProto right = relu_model();
  set_type(*right.mutable_graph()->add_output(), "y", {"2", "N"});
  EXPECT_EQ(refusal_of(right), "");

  ModelProto extent = relu_model();
  set_type(*extent.mutable_graph()->add_output(), "y", {"2", "4"});
  EXPECT_EQ(warnings_of(extent), "output 'y' is declared as f32[2, 4] but is f32[2, 3]");

  ModelProto rank = relu_model();
  set_type(*rank.mutable_graph()->add_output(), "y", {"2"});
  EXPECT_EQ(warnings_of(rank), "output 'y' is declared as f32[2] but is f32[2, 3]");

  ModelProto element = relu_model();
  set_type(*element.mutable_graph()->add_output(), "y", {"2", "3"}, TensorProto::INT64);
  EXPECT_EQ(refusal_of(element),
            "output 'y' is not what the model says it is\n"
            "  at        m.onnx\n"
            "  expected  i64[2, 3], as declared\n"
            "  got       f32[2, 3]");
}

TEST(OnnxContradictions, NumberOfInputs) {
  ModelProto model = relu_model();
  model.mutable_graph()->mutable_node(0)->add_input("x");
  add_output(*model.mutable_graph(), "y");
  EXPECT_EQ(refusal_of(model),
            "it has too many inputs\n"
            "  at        m.onnx, node 'act' (Relu)\n"
            "  expected  at most 1\n"
            "  got       2");
  // An input with an empty name is absent.
  model.mutable_graph()->mutable_node(0)->set_input(1, "");
  EXPECT_EQ(refusal_of(model), "");
}

TEST(OnnxContradictions, UnusedInputsOfDropout) {
  ModelProto model = new_model();
  GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {"2"});
  add_input(graph, "ratio", {});
  add_node(graph, "Dropout", {"x", "ratio"}, {"y"});
  add_output(graph, "y");
  EXPECT_EQ(refusal_of(model), "");
}

TEST(OnnxContradictions, KernelShapeMatchesWeights) {
  EXPECT_EQ(refusal_of(conv_model({3, 3})), "");
  EXPECT_EQ(refusal_of(conv_model({})), "");
  EXPECT_EQ(refusal_of(conv_model({3, 2})),
            "attribute 'kernel_shape' is not that of the weights\n"
            "  at        m.onnx, node 'conv' (Conv)\n"
            "  expected  [3, 3]\n"
            "  got       [3, 2]");
  EXPECT_NE(refusal_of(conv_model({3})), "");
}

TEST(OnnxContradictions, AttributeTypes) {
  ModelProto model = new_model();
  GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {"2"});
  add_integer(add_node(graph, "LeakyRelu", {"x"}, {"y"}, "act"), "alpha", 1);
  add_output(graph, "y");
  EXPECT_EQ(refusal_of(model),
            "attribute 'alpha' is not a float\n"
            "  at        m.onnx, node 'act' (LeakyRelu)\n"
            "  got       INT");
}

TEST(OnnxContradictions, UnknownVersions) {
  for (const std::int64_t version : {0, -1}) {
    ModelProto model = relu_model();
    add_output(*model.mutable_graph(), "y");
    model.set_ir_version(version);
    EXPECT_NE(refusal_of(model).find(concat("IR version ", version, " does not exist")),
              std::string::npos);
  }
  for (const std::int64_t version :
       {std::int64_t{0}, std::int64_t{29}, std::int64_t{9999}, INT64_MAX}) {
    ModelProto model = relu_model();
    add_output(*model.mutable_graph(), "y");
    model.mutable_opset_import(0)->set_version(version);
    EXPECT_NE(refusal_of(model).find(concat("opset version ", version, " is not known")),
              std::string::npos);
  }
}

TEST(OnnxContradictions, ZeroPointsPerAxisRequireTheAxis) {
  ModelProto model = new_model();
  GraphProto& graph = *model.mutable_graph();
  add_input(graph, "a", {}, TensorProto::UINT8);
  add_input(graph, "b", {}, TensorProto::UINT8);
  add_input(graph, "zero", {"2"}, TensorProto::UINT8);
  add_node(graph, "MatMulInteger", {"a", "b", "zero", "zero"}, {"y"});
  add_output(graph, "y");
  EXPECT_NE(refusal_of(model), "");
}

}  // namespace
}  // namespace tenon::frontends::onnx::testing_models::contradictions_test
