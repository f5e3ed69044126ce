#include "unit/error_text.h"
#include "unit/frontends/onnx_model.h"

#include <gtest/gtest.h>

namespace tenon::frontends::onnx::testing_models::import_test {
namespace {

TEST(Import, KeepsNamesSymbolsAndConstants) {
  ModelProto model = new_model();
  GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {"batch", "2", ""});
  *graph.add_initializer() = floats("w", {1, 2});
  add_node(graph, "Relu", {"x"}, {"r"}, "first");
  add_node(graph, "Add", {"r", "r"}, {"y"});
  add_output(graph, "y");
  EXPECT_EQ(imported(model),
            "graph g (x: f32[batch, 2, \"x#2\"]) {\n"
            "  w = constant f32[2] [1, 2]\n"
            "  r = relu(x) @ \"first\"\n"
            "  y = add(r, r)\n"
            "  return y\n"
            "}\n");
}

TEST(Import, InitializersOverrideInputs) {
  ModelProto model = new_model();
  model.set_ir_version(3);
  GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {"1"});
  add_input(graph, "w", {"1"});
  *graph.add_initializer() = floats("w", {4});
  add_node(graph, "Add", {"x", "w"}, {"y"});
  add_output(graph, "y");
  const Graph read = import_model(model);
  EXPECT_EQ(read.inputs().size(), 1u);
  EXPECT_NE(read.constant_of(read.find("w")), nullptr);
}

TEST(Import, OutputsThatAreInputsAreCopied) {
  ModelProto model = new_model();
  GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {"2"});
  add_node(graph, "Relu", {"x"}, {"y"});
  add_output(graph, "x");
  add_output(graph, "y");
  add_output(graph, "y");
  const Graph read = import_model(model);
  ASSERT_EQ(read.outputs().size(), 3u);
  for (ValueId output : read.outputs()) EXPECT_TRUE(read.value(output).producer);
  EXPECT_NE(read.outputs()[1], read.outputs()[2]);
}

// A condition that the body passes on: only the trip count ends the loop.
TEST(Import, LoopsWithAConditionThatNeverChanges) {
  const auto model_with = [](bool is_known) {
    ModelProto model = new_model();
    GraphProto& graph = *model.mutable_graph();
    add_input(graph, "n", {}, TensorProto::INT64);
    add_input(graph, "x", {"2"});
    if (is_known) {
      TensorProto& go = *graph.add_initializer();
      go.set_name("go");
      go.set_data_type(TensorProto::BOOL);
      go.add_int32_data(1);
    } else {
      add_input(graph, "go", {}, TensorProto::BOOL);
    }
    GraphProto body;
    add_input(body, "i", {}, TensorProto::INT64);
    add_input(body, "on", {}, TensorProto::BOOL);
    add_input(body, "v", {"2"});
    add_node(body, "Identity", {"on"}, {"goes_on"});
    add_node(body, "Relu", {"v"}, {"w"});
    for (const char* name : {"goes_on", "w", "w"}) add_output(body, name);
    NodeProto& loop = add_node(graph, "Loop", {"n", "go", "x"}, {"y", "all"});
    onnx_schema::AttributeProto& attr = *loop.add_attribute();
    attr.set_name("body");
    attr.set_type(onnx_schema::AttributeProto::GRAPH);
    *attr.mutable_g() = std::move(body);
    add_output(graph, "all");
    return model;
  };
  EXPECT_NE(imported(model_with(true)).find("loop(n, values = x)"), std::string::npos)
      << imported(model_with(true));
  const std::string unknown = imported(model_with(false));
  EXPECT_NE(unknown.find(" = where(go, n, "), std::string::npos) << unknown;
  EXPECT_EQ(unknown.find("condition"), std::string::npos) << unknown;
}

TEST(Import, KeepsMetadata) {
  ModelProto model = new_model();
  model.set_producer_name("someone");
  auto& entry = *model.add_metadata_props();
  entry.set_key("license");
  entry.set_value("MIT");
  add_input(*model.mutable_graph(), "x", {"2"});
  add_node(*model.mutable_graph(), "Relu", {"x"}, {"y"});
  add_output(*model.mutable_graph(), "y");
  const Graph read = import_model(model);
  EXPECT_EQ(read.metadata.at("producer_name"), "someone");
  EXPECT_EQ(read.metadata.at("license"), "MIT");
  EXPECT_EQ(read.metadata.at("opset"), "ai.onnx 17");
}

TEST(Import, ReportsAllUnsupportedOperators) {
  ModelProto model = new_model();
  GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {"2"});
  add_node(graph, "Frobnicate", {"x"}, {"a"}, "one");
  add_node(graph, "Frobnicate", {"a"}, {"b"}, "two");
  add_node(graph, "Relu", {"b"}, {"c"});
  NodeProto& foreign = add_node(graph, "Blend", {"c"}, {"d"}, "three");
  foreign.set_domain("acme");
  add_output(graph, "d");
  EXPECT_EQ(imported(model),
            "cannot import the model: 2 things are not supported\n"
            "  - Frobnicate (2 nodes: 'one', 'two')\n"
            "  - acme:Blend (node 'three')\n"
            "  at        m.onnx");
}

GraphProto& add_body(NodeProto& node, const std::string& attr_name) {
  auto& attr = *node.add_attribute();
  attr.set_name(attr_name);
  attr.set_type(onnx_schema::AttributeProto::GRAPH);
  attr.mutable_g()->set_name(attr_name);
  return *attr.mutable_g();
}

TEST(Import, SortsNodesWithAWarning) {
  ModelProto model = new_model();
  GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {"2"});
  add_node(graph, "Relu", {"later"}, {"y"}, "first");
  add_node(graph, "Neg", {"x"}, {"unrelated"}, "second");
  add_node(graph, "Abs", {"x"}, {"later"}, "third");
  add_output(graph, "y");
  add_output(graph, "unrelated");
  EXPECT_EQ(imported(model),
            "graph g (x: f32[2]) {\n"
            "  unrelated = neg(x) @ \"second\"\n"
            "  later = abs(x) @ \"third\"\n"
            "  y = relu(later) @ \"first\"\n"
            "  return y, unrelated\n"
            "}\n");
  EXPECT_EQ(warnings_of(model),
            "the nodes of graph 'g' are not sorted topologically: node 'first' (Relu) reads "
            "'later' before it is made");
}

// A branch is sorted, and its node comes after the outer values that the branch reads.
TEST(Import, SortsNodesOfBodies) {
  ModelProto model = new_model();
  GraphProto& graph = *model.mutable_graph();
  add_input(graph, "c", {}, TensorProto::BOOL);
  add_input(graph, "x", {"2"});
  NodeProto& choice = add_node(graph, "If", {"c"}, {"y"}, "choice");
  for (const char* name : {"then_branch", "else_branch"}) {
    GraphProto& branch = add_body(choice, name);
    add_node(branch, "Neg", {"early"}, {"y"}, "late");
    add_node(branch, "Abs", {"outer"}, {"early"});
    add_output(branch, "y");
  }
  add_node(graph, "Relu", {"x"}, {"outer"});
  add_output(graph, "y");
  const Graph read = import_model(model);
  EXPECT_EQ(read.node(read.value(read.outputs()[0]).producer).op->name, "if");
  EXPECT_EQ(warnings_of(model),
            "the nodes of graph 'then_branch' are not sorted topologically: node 'late' (Neg) "
            "reads 'early' before it is made\n"
            "the nodes of graph 'else_branch' are not sorted topologically: node 'late' (Neg) "
            "reads 'early' before it is made\n"
            "the nodes of graph 'g' are not sorted topologically: node 'choice' (If) reads "
            "'outer' before it is made");
}

TEST(Import, RefusesCycles) {
  ModelProto model = new_model();
  GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {"2"});
  add_node(graph, "Relu", {"b"}, {"y"}, "behind");
  add_node(graph, "Add", {"x", "b"}, {"a"}, "sum");
  add_node(graph, "Relu", {"a"}, {"b"}, "act");
  add_output(graph, "y");
  EXPECT_EQ(imported(model),
            "the nodes form a cycle\n"
            "  at        m.onnx, node 'act' (Relu)\n"
            "  expected  no node to depend on its own results\n"
            "  got       'act' (Relu) reads from 'sum' (Add) reads from 'act' (Relu)");
}

// Far more nodes in a cycle than a stack has frames.
TEST(Import, RefusesLongCycles) {
  ModelProto model = new_model();
  GraphProto& graph = *model.mutable_graph();
  constexpr int count = 200'000;
  for (int k = 0; k < count; ++k) {
    add_node(graph, "Relu", {std::to_string((k + 1) % count)}, {std::to_string(k)});
  }
  add_output(graph, "0");
  EXPECT_EQ(imported(model).substr(0, 22), "the nodes form a cycle");
}

TEST(Import, RefusesDuplicateNames) {
  ModelProto model = new_model();
  GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {"2"});
  add_node(graph, "Relu", {"x"}, {"x"}, "again");
  add_output(graph, "x");
  EXPECT_EQ(imported(model),
            "two values are called 'x'\n"
            "  at        m.onnx, node 'again' (Relu)\n"
            "  expected  every name to be given once in a graph");
}

TEST(Import, RequiresAnOpsetPerDomain) {
  ModelProto model = new_model();
  model.clear_opset_import();
  add_input(*model.mutable_graph(), "x", {"2"});
  add_node(*model.mutable_graph(), "Relu", {"x"}, {"y"});
  add_output(*model.mutable_graph(), "y");
  EXPECT_EQ(imported(model),
            "the model imports no opset for the domain 'ai.onnx'\n"
            "  at        m.onnx, node 'y' (Relu)\n"
            "  expected  an entry in opset_import for every domain in use");
  model.set_ir_version(2);  // which did not have opset_import
  EXPECT_EQ(imported(model).substr(0, 5), "graph");
}

TEST(Import, RefusesEmptyNodesAndGraphs) {
  ModelProto model = new_model();
  EXPECT_EQ(imported(model), "the model has no outputs\n  at        m.onnx");
  add_node(*model.mutable_graph(), "", {}, {"y"});
  add_output(*model.mutable_graph(), "y");
  EXPECT_EQ(imported(model), "a node does not say what it does\n  at        m.onnx, node 'y' ()");
}

TEST(Import, NamesMissingOutputs) {
  ModelProto model = new_model();
  add_input(*model.mutable_graph(), "x", {"2"});
  add_output(*model.mutable_graph(), "y");
  EXPECT_EQ(imported(model), "nothing makes the output 'y'\n  at        m.onnx");
}

TEST(Import, WrongTypesPointAtTheNode) {
  ModelProto model = new_model();
  GraphProto& graph = *model.mutable_graph();
  add_input(graph, "a", {"2"});
  add_input(graph, "b", {"3"});
  add_node(graph, "Add", {"a", "b"}, {"y"}, "sum");
  add_output(graph, "y");
  EXPECT_NE(imported(model).find("at        m.onnx, node 'sum' (Add)"), std::string::npos);
}

// A model whose one node calls the function `body` has.
ModelProto calling_model(onnx_schema::FunctionProto& (*define)(ModelProto&)) {
  ModelProto model = new_model();
  onnx_schema::FunctionProto& function = define(model);
  function.set_domain("local");
  function.add_opset_import()->set_version(17);
  auto& domain = *model.add_opset_import();
  domain.set_domain("local");
  domain.set_version(1);
  add_input(*model.mutable_graph(), "x", {"2"});
  add_node(*model.mutable_graph(), function.name(), {"x"}, {"y"}, "call").set_domain("local");
  add_output(*model.mutable_graph(), "y");
  return model;
}

onnx_schema::FunctionProto& leaky_function(ModelProto& model) {
  onnx_schema::FunctionProto& function = *model.add_functions();
  function.set_name("Soften");
  function.add_input("in");
  function.add_output("out");
  add_node(function, "Relu", {"in"}, {"middle"});
  add_float(add_node(function, "LeakyRelu", {"middle"}, {"out"}), "alpha", 0)
      .set_ref_attr_name("slope");
  auto& slope = *function.add_attribute_proto();
  slope.set_name("slope");
  slope.set_type(onnx_schema::AttributeProto::FLOAT);
  slope.set_f(0.25f);
  return function;
}

TEST(Import, InlinesFunctionsWithDefaults) {
  ModelProto model = calling_model(leaky_function);
  EXPECT_EQ(imported(model),
            "graph g (x: f32[2]) {\n"
            "  call/middle = relu(x)\n"
            "  y = leaky_relu(call/middle) {alpha = 0.25}\n"
            "  return y\n"
            "}\n");
  add_float(*model.mutable_graph()->mutable_node(0), "slope", 0.5f);
  EXPECT_NE(imported(model).find("{alpha = 0.5}"), std::string::npos);
}

TEST(Import, OmitsFunctionAttributesWithoutValue) {
  ModelProto model = calling_model(leaky_function);
  model.mutable_functions(0)->clear_attribute_proto();
  model.mutable_functions(0)->add_attribute("slope");
  EXPECT_NE(imported(model).find("leaky_relu(call/middle)\n"), std::string::npos);
}

TEST(Import, RefusesRecursiveFunctions) {
  const ModelProto model = calling_model([](ModelProto& made) -> onnx_schema::FunctionProto& {
    onnx_schema::FunctionProto& function = *made.add_functions();
    function.set_name("Again");
    function.add_input("in");
    function.add_output("out");
    add_node(function, "Again", {"in"}, {"out"}, "inner").set_domain("local");
    return function;
  });
  EXPECT_EQ(imported(model),
            "function 'Again' calls itself\n"
            "  at        m.onnx, node 'call' (local:Again), node 'inner' (local:Again)");
}

TEST(Import, LimitsExponentialInlining) {
  ModelProto model = new_model();
  const int levels = 30;
  for (int level = 0; level < levels; ++level) {
    onnx_schema::FunctionProto& function = *model.add_functions();
    function.set_domain("local");
    function.set_name("F" + std::to_string(level));
    function.add_opset_import()->set_version(17);
    function.add_input("in");
    function.add_output("b");
    const std::string inner = level == 0 ? "Relu" : "F" + std::to_string(level - 1);
    const std::string domain = level == 0 ? "" : "local";
    add_node(function, inner, {"in"}, {"a"}).set_domain(domain);
    add_node(function, inner, {"a"}, {"b"}).set_domain(domain);
  }
  add_input(*model.mutable_graph(), "x", {"2"});
  add_node(*model.mutable_graph(), "F" + std::to_string(levels - 1), {"x"}, {"y"})
      .set_domain("local");
  add_output(*model.mutable_graph(), "y");
  EXPECT_EQ(imported(model).substr(0, 43), "calls of functions make the model too large");
}

TEST(Import, RefusesOtherFiles) {
  const auto message = [](const std::string& bytes) {
    return error_text([&] { import_onnx(std::as_bytes(std::span(bytes)), {}, "file"); });
  };
  EXPECT_EQ(message(""), "not an ONNX model, or damaged\n  at        file");
  EXPECT_EQ(message("hello, world\n"),
            "not an ONNX model, or damaged\n  at        file\n  got       a text");
  EXPECT_EQ(message("PK\3\4......"),
            "not an ONNX model, or damaged\n  at        file\n  got       a zip archive");
  EXPECT_NE(message("version https://git-lfs.github.com/spec/v1\n").find("Git LFS pointer"),
            std::string::npos);
  EXPECT_NE(message(std::string(1000, '\xff')), "no error");
}

TEST(Import, TruncatedModelsAreRefusedOrValid) {
  ModelProto model = calling_model(leaky_function);
  *model.mutable_graph()->add_initializer() = floats("w", std::vector<float>(6000, 1));
  const std::string bytes = model.SerializeAsString();
  for (std::size_t size = 0; size < bytes.size(); size += size < 600 ? 1 : 997) {
    try {
      import_onnx(std::as_bytes(std::span(bytes).first(size)));
    } catch (const Error&) {
      continue;
    }
  }
}

TEST(Import, LargeWeightsAreNotCopied) {
  ModelProto model = new_model();
  GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {"1"});
  *graph.add_initializer() = floats("small", {3});
  *graph.add_initializer() =
      floats("large", std::vector<float>(10000, 2));  // lifted from float_data
  TensorProto& raw = *graph.add_initializer();
  raw = floats("raw", {});
  raw.set_dims(0, 10000);
  raw.set_raw_data(std::string(40000, '\1'));
  add_node(graph, "Relu", {"x"}, {"y"});
  add_output(graph, "y");
  const Graph read = import_model(model);
  EXPECT_EQ(read.constant_of(read.find("small"))->stored().real_at(0), 3);
  EXPECT_EQ(read.constant_of(read.find("large"))->stored().real_at(9999), 2);
  EXPECT_EQ(read.constant_of(read.find("raw"))->stored().bytes()[39999], std::byte{1});
  raw.set_dims(0, 10001);
  EXPECT_NE(imported(model).find("m.onnx, initializer 'raw'"), std::string::npos);
}

TEST(Import, CapturesBecomeBodyInputs) {
  ModelProto model = new_model();
  GraphProto& graph = *model.mutable_graph();
  add_input(graph, "c", {}, TensorProto::BOOL);
  add_input(graph, "a", {"2"});
  add_input(graph, "b", {"2"});
  *graph.add_initializer() = floats("w", {1, 2});
  NodeProto& node = add_node(graph, "If", {"c"}, {"y"});
  GraphProto& first = add_body(node, "then_branch");
  add_node(first, "Add", {"a", "w"}, {"p"});  // a small constant is repeated inside
  add_output(first, "p");
  GraphProto& second = add_body(node, "else_branch");
  add_node(second, "Mul", {"b", "a"}, {"q"});
  add_output(second, "q");
  add_output(graph, "y");
  EXPECT_EQ(imported(model),
            "graph g (c: bool[], a: f32[2], b: f32[2]) {\n"
            "  w = constant f32[2] [1, 2]\n"
            "  y = if(c, a, b) then = graph then_branch (a: f32[2], b: f32[2]) {\n"
            "    w = constant f32[2] [1, 2]\n"
            "    p = add(a, w)\n"
            "    return p\n"
            "  } else = graph else_branch (a: f32[2], b: f32[2]) {\n"
            "    q = mul(b, a)\n"
            "    return q\n"
            "  }\n"
            "  return y\n"
            "}\n");
}

TEST(Import, CapturesPassThroughNestedBodies) {
  ModelProto model = new_model();
  GraphProto& graph = *model.mutable_graph();
  add_input(graph, "c", {}, TensorProto::BOOL);
  add_input(graph, "a", {"2"});
  NodeProto& outer = add_node(graph, "If", {"c"}, {"y"});
  for (const char* branch : {"then_branch", "else_branch"}) {
    GraphProto& body = add_body(outer, branch);
    NodeProto& inner = add_node(body, "If", {"c"}, {"z"});
    for (const char* leaf : {"then_branch", "else_branch"}) {
      GraphProto& innermost = add_body(inner, leaf);
      add_node(innermost, "Relu", {"a"}, {"r"});
      add_output(innermost, "r");
    }
    add_output(body, "z");
  }
  add_output(graph, "y");
  const Graph read = import_model(model);
  const Node& node = read.node(read.value(read.outputs()[0]).producer);
  ASSERT_EQ(node.bodies.size(), 2u);
  EXPECT_EQ(node.bodies[0].inputs().size(), 2u);  // c and a
}

TEST(Import, ErrorsInBodiesHaveTheirPath) {
  ModelProto model = new_model();
  GraphProto& graph = *model.mutable_graph();
  add_input(graph, "c", {}, TensorProto::BOOL);
  NodeProto& node = add_node(graph, "If", {"c"}, {"y"}, "choose");
  add_node(add_body(node, "then_branch"), "Relu", {"nothing"}, {"p"}, "inside");
  add_body(node, "else_branch");
  add_output(graph, "y");
  EXPECT_NE(imported(model).find("at        m.onnx, node 'choose' (If), body 'then_branch', node "
                                 "'inside' (Relu)"),
            std::string::npos)
      << imported(model);
}

TEST(Import, RefusesDeepNesting) {
  GraphProto graph;
  for (int depth = 0; depth < 400; ++depth) {
    GraphProto outer;
    NodeProto& node = add_node(outer, "If", {"c"}, {"y"});
    auto& attr = *node.add_attribute();
    attr.set_name("then_branch");
    attr.set_type(onnx_schema::AttributeProto::GRAPH);
    *attr.mutable_g() = std::move(graph);
    graph = std::move(outer);
  }
  ModelProto model = new_model();
  *model.mutable_graph() = std::move(graph);
  EXPECT_NE(imported(model).find("not an ONNX model, or damaged"), std::string::npos);
}

}  // namespace
}  // namespace tenon::frontends::onnx::testing_models::import_test
