#include "frontends/onnx/export.h"
#include "ops/definition/registry.h"
#include "unit/error_text.h"
#include "unit/frontends/onnx_model.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace tenon::frontends::onnx::testing_models::export_test {
namespace {

namespace fs = std::filesystem;

Graph parsed(std::string_view text) { return parse_graph(text, all_ops()); }

ModelProto exported(const Graph& graph, const ExportOptions& options = {}) {
  ModelProto model;
  EXPECT_TRUE(model.ParseFromString(export_onnx(graph, options)));
  return model;
}

std::string round_trip(const Graph& graph) {
  Graph read = import_model(exported(graph));
  read.metadata.clear();
  return print(read);
}

const char* const small_graph =
    "graph g (x: f32[batch, 2]) {\n"
    "  w = constant f32[2] [1, 2]\n"
    "  s = add(x, w)\n"
    "  y = leaky_relu(s) {alpha = 0.5} @ \"act\"\n"
    "  return y\n"
    "}\n";

TEST(Export, RoundTrip) { EXPECT_EQ(round_trip(parsed(small_graph)), small_graph); }

TEST(Export, ChoosesTheSmallestSufficientOpset) {
  const ModelProto plain = exported(parsed(small_graph));
  EXPECT_EQ(plain.opset_import(0).version(), 13);
  EXPECT_EQ(plain.ir_version(), 7);
  const Graph newer = parsed("graph (x: f32[2]) {\n  y = mish(x)\n  return y\n}\n");
  EXPECT_EQ(exported(newer).opset_import(0).version(), 18);
}

TEST(Export, RefusesAnOpsetTooOldForANode) {
  const Graph graph = parsed("graph g (x: f32[2]) {\n  y = mish(x)\n  return y\n}\n");
  try {
    export_onnx(graph, ExportOptions{.opset = 17});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "cannot export the model: 1 thing is not supported\n"
                 "  - mish: it needs opset 18\n"
                 "  at        graph 'g'");
    EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
  }
}

TEST(Export, OmitsDefaultAttributesOfLaterOpsets) {
  const ModelProto plain = exported(
      parsed("graph (x: f32[2, 3]) {\n  y = reshape(x) {shape = [3, 2]}\n  return y\n}\n"));
  EXPECT_EQ(plain.opset_import(0).version(), 13);
  EXPECT_EQ(plain.graph().node(0).attribute_size(), 0);
  const ModelProto zero =
      exported(parsed("graph (x: f32[0, 3]) {\n"
                      "  y = reshape(x) {shape = [3, 0], allow_zero = true}\n  return y\n}\n"));
  EXPECT_EQ(zero.opset_import(0).version(), 14);
  ASSERT_EQ(zero.graph().node(0).attribute_size(), 1);
  EXPECT_EQ(zero.graph().node(0).attribute(0).name(), "allowzero");

  const Graph sum = parsed(
      "graph g (x: f32[4], i: i64[2, 1], u: f32[2]) {\n"
      "  y = scatter_nd(x, i, u) {reduction = add}\n  return y\n}\n");
  EXPECT_EQ(exported(sum).opset_import(0).version(), 16);
  EXPECT_EQ(error_text([&] { export_onnx(sum, ExportOptions{.opset = 9}); }),
            "cannot export the model: 1 thing is not supported\n"
            "  - scatter_nd: it needs opset 16\n"
            "  at        graph 'g'");
}

TEST(Export, OutputNamesAreUnique) {
  const Graph graph = parsed("graph (x: f32[2]) {\n  y = relu(x)\n  return y, y, x\n}\n");
  const ModelProto model = exported(graph);
  ASSERT_EQ(model.graph().output_size(), 3);
  EXPECT_EQ(model.graph().output(0).name(), "y");
  EXPECT_NE(model.graph().output(1).name(), "y");
  EXPECT_NE(model.graph().output(2).name(), "x");
}

TEST(Export, LargeModelsUseExternalData) {
  const fs::path folder = fs::path(::testing::TempDir()) / "tenon_export_test";
  fs::create_directories(folder);
  const std::string path = folder / "m.onnx";
  const Graph graph = parsed(
      "graph g (x: f32[1000]) {\n"
      "  w = constant f32[1000] normal(seed = 1, mean = 0.0, deviation = 1.0)\n"
      "  y = add(x, w)\n  return y\n}\n");
  export_onnx(graph, path, ExportOptions{.max_embedded_bytes = 0});
  EXPECT_EQ(fs::file_size(path + ".data"), 4000u);
  EXPECT_LT(fs::file_size(path), 1000u);
  const Graph read = import_onnx(path);
  const Tensor expected = graph.constant_of(graph.find("w"))->materialise();
  EXPECT_TRUE(identical(read.constant_of(read.find("w"))->materialise(), expected));
  // Also over itself, while its data is still mapped.
  export_onnx(read, path, ExportOptions{.max_embedded_bytes = 0});
  const Graph again = import_onnx(path);
  EXPECT_TRUE(identical(again.constant_of(again.find("w"))->materialise(), expected));
  fs::remove_all(folder);
}

TEST(Export, BodiesCaptureOuterValuesByName) {
  const Graph graph = parsed(
      "graph g (c: bool[], a: f32[2]) {\n"
      "  y = if(c, a)\n"
      "    then = graph t (x: f32[2]) {\n"
      "      p = relu(x)\n"
      "      return p\n"
      "    }\n"
      "    else = graph e (x: f32[2]) {\n"
      "      return x\n"
      "    }\n"
      "  return y\n"
      "}\n");
  const ModelProto model = exported(graph);
  ASSERT_EQ(model.graph().node_size(), 1);
  const NodeProto& node = model.graph().node(0);
  EXPECT_EQ(node.input_size(), 1);
  for (const auto& attr : node.attribute()) {
    EXPECT_EQ(attr.g().input_size(), 0);
    ASSERT_EQ(attr.g().node_size(), 1);  // an outer value as an output is copied
    EXPECT_EQ(attr.g().node(0).input(0), "a");
  }
  EXPECT_EQ(import_model(model).node_count(), 1u);
}

TEST(Export, SymbolicExtentsUseShapeNodes) {
  const Graph graph = parsed(
      "graph g (x: f32[N, 6]) {\n"
      "  y = reshape(x) {shape = [2*N, 3]}\n"
      "  return y\n"
      "}\n");
  const Graph read = import_model(exported(graph));
  EXPECT_EQ(to_string(read.value(read.outputs()[0]).type), "f32[2*N, 3]");
}

TEST(Export, FailureLeavesNoFile) {
  const std::string path = ::testing::TempDir() + "missing_folder/m.onnx";
  EXPECT_THROW(export_onnx(parsed(small_graph), path), Error);
}

}  // namespace
}  // namespace tenon::frontends::onnx::testing_models::export_test
