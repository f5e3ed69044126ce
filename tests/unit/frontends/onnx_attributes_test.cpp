// Attributes and opsets that an operator lacks, and the report of all errors of a model.
#include "onnx_model.h"

#include <gtest/gtest.h>

namespace tenon::frontends::onnx {
namespace {

using namespace testing_models;

// A model of one node with one integer attribute.
ModelProto model_with(const std::string& op_type, const std::string& attr,
                      const std::vector<std::vector<std::string>>& shapes, int opset = 17,
                      const std::string& domain = "") {
  ModelProto model = new_model(opset);
  std::vector<std::string> names;
  for (const auto& shape : shapes) {
    names.push_back(std::string(1, static_cast<char>('a' + names.size())));
    add_input(*model.mutable_graph(), names.back(), shape);
  }
  NodeProto& node = add_node(*model.mutable_graph(), op_type, names, {"y"});
  node.set_domain(domain);
  if (!domain.empty()) {
    model.add_opset_import()->set_domain(domain);
    model.mutable_opset_import(1)->set_version(1);
  }
  if (!attr.empty()) add_integer(node, attr, 1);
  add_output(*model.mutable_graph(), "y");
  return model;
}

std::string refusal(const ModelProto& model) {
  const std::string text = imported(model);
  return text.starts_with("graph") ? "" : text;
}

const std::vector<std::string> kImage{"1", "2", "4", "4"};
const std::vector<std::string> kHeads{"1", "2", "3", "4"};

TEST(OnnxAttributes, OffersTheNearestName) {
  EXPECT_EQ(refusal(model_with("Conv", "dilation", {kImage, {"2", "2", "1", "1"}})),
            "Conv has no attribute 'dilation'\n  at        m.onnx, node 'y' (Conv)\n"
            "  hint      did you mean 'dilations'?");
  EXPECT_EQ(refusal(model_with("Gemm", "Alpha", {{"2", "2"}, {"2", "2"}})),
            "Gemm has no attribute 'Alpha'\n  at        m.onnx, node 'y' (Gemm)\n"
            "  hint      did you mean 'alpha'?");
  EXPECT_EQ(refusal(model_with("Relu", "alpha", {{"2"}})),
            "Relu has no attribute 'alpha'\n  at        m.onnx, node 'y' (Relu)");
}

TEST(OnnxAttributes, DependOnTheOpset) {
  EXPECT_EQ(refusal(model_with("Relu", "consumed_inputs", {{"2"}}, 5)), "");
  EXPECT_NE(refusal(model_with("Relu", "consumed_inputs", {{"2"}}, 6)), "");
  EXPECT_EQ(refusal(model_with("Attention", "left_window_size", {kHeads, kHeads, kHeads}, 25)), "");
  EXPECT_NE(refusal(model_with("Attention", "left_window_size", {kHeads, kHeads, kHeads}, 24)), "");
}

TEST(OnnxAttributes, OtherDomains) {
  EXPECT_EQ(
      refusal(model_with("Gelu", "approximate", {{"2"}}, 17, "com.microsoft")),
      "Gelu has no attribute 'approximate'\n  at        m.onnx, node 'y' (com.microsoft:Gelu)");
  EXPECT_EQ(refusal(model_with("Binarizer", "treshold", {{"2"}}, 17, "ai.onnx.ml")),
            "Binarizer has no attribute 'treshold'\n  at        m.onnx, node 'y' "
            "(ai.onnx.ml:Binarizer)\n  hint      did you mean 'threshold'?");
}

TEST(OnnxAttributes, RefusesOneGivenTwice) {
  ModelProto model = model_with("Softmax", "axis", {{"2", "2"}});
  add_integer(*model.mutable_graph()->mutable_node(0), "axis", 0);
  EXPECT_EQ(refusal(model),
            "attribute 'axis' is given twice\n  at        m.onnx, node 'y' (Softmax)");
}

// ONNX leaves names with two underscores to the tools that write them.
TEST(OnnxAttributes, AcceptsPrivateNames) {
  EXPECT_EQ(refusal(model_with("Relu", "__origin", {{"2"}})), "");
}

TEST(OnnxAttributes, FunctionsHaveTheirOwn) {
  ModelProto model = model_with("Scaled", "axes", {{"2", "2"}}, 17, "acme");
  auto& function = *model.add_functions();
  function.set_name("Scaled");
  function.set_domain("acme");
  function.add_input("x");
  function.add_output("z");
  function.add_attribute("axis");
  function.add_opset_import()->set_version(17);
  add_node(function, "Relu", {"x"}, {"z"});
  EXPECT_EQ(refusal(model),
            "Scaled has no attribute 'axes'\n  at        m.onnx, node 'y' (acme:Scaled)\n"
            "  hint      did you mean 'axis'?");
}

TEST(OnnxOpsets, RefusesNewerOnesOfEveryDomain) {
  ModelProto model = model_with("Binarizer", "", {{"2"}}, 17, "ai.onnx.ml");
  model.mutable_opset_import(1)->set_version(6);
  EXPECT_EQ(refusal(model),
            "opset version 6 is not known\n  at        m.onnx\n"
            "  expected  1 to 5 of the domain 'ai.onnx.ml'");
  EXPECT_EQ(refusal(model_with("Relu", "", {{"2"}}, 29)),
            "opset version 29 is not known\n  at        m.onnx\n  expected  1 to 28");
}

// An undefined input, an unknown operator and attribute, a contradiction and a missing output; the
// readers of their results are not reported.
TEST(OnnxProblems, AreReportedAtOnce) {
  ModelProto model = new_model();
  GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {"2"});
  add_input(graph, "z", {"3"});
  add_node(graph, "Relu", {"ghost"}, {"a"}, "one");
  add_node(graph, "Frobnicate", {"a"}, {"b"}, "two");
  add_node(graph, "Reshape", {"b", "a"}, {"c"}, "three");
  add_integer(add_node(graph, "Softmax", {"c"}, {"d"}, "four"), "axes", 1);
  add_node(graph, "Add", {"x", "z"}, {"e"}, "five");
  add_output(graph, "e");
  add_output(graph, "f");
  std::vector<std::string> summaries;
  try {
    import_model(model);
  } catch (const Error& error) {
    summaries.push_back(error.summary());
    for (const Error& further : error.further()) summaries.push_back(further.summary());
  }
  ASSERT_EQ(summaries.size(), 5u);
  EXPECT_EQ(summaries[0], "nothing makes 'ghost'");
  EXPECT_EQ(summaries[1], "Softmax has no attribute 'axes'");
  EXPECT_NE(summaries[2].find("add: "), std::string::npos) << summaries[2];
  EXPECT_EQ(summaries[3], "nothing makes the output 'f'");
  EXPECT_NE(summaries[4].find("- Frobnicate (node 'two')"), std::string::npos) << summaries[4];
}

}  // namespace
}  // namespace tenon::frontends::onnx
