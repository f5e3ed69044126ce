// Shape inference for Chainer's training graphs from sizes in bytes, and each function as
// operators.
#include "base/error.h"
#include "documents/chainer/importer.h"
#include "documents/chainer/solver.h"
#include "documents/document.h"
#include "ir/text.h"
#include "unit/documents/mutation.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

namespace tenon::documents::chainer::chainer_shapes_test {
namespace {

Tables fixture(const std::string& name) {
  return parse_tables(read_fixture(name + "_chainer.graph.txt"), name);
}

std::string type_of(const Tables& tables, const ShapeSolution& solution, std::int64_t id) {
  for (std::size_t v = 0; v < tables.variables.size(); ++v) {
    if (tables.variables[v].id == id)
      return solution.types[v] ? to_string(*solution.types[v]) : "?";
  }
  return "no such variable";
}

TEST(ChainerShapes, UNetHasOneSolution) {
  const Tables tables = fixture("unet");
  const ShapeSolution solution = solve_shapes(tables, "unet");
  ASSERT_TRUE(solution.is_solved);
  EXPECT_FALSE(solution.is_ambiguous);
  EXPECT_FALSE(solution.is_cut_off);
  EXPECT_EQ(type_of(tables, solution, 53), "f32[8, 1, 572, 572]");
  EXPECT_EQ(type_of(tables, solution, 37), "i32[8, 388, 388]");
  EXPECT_EQ(type_of(tables, solution, 91), "f32[8, 192, 392, 392]");
  EXPECT_EQ(type_of(tables, solution, 26), "f32[128, 128, 2, 2]");
  EXPECT_EQ(type_of(tables, solution, 4), "f32[]");
  for (std::size_t v = 0; v < tables.variables.size(); ++v) {
    ASSERT_TRUE(solution.types[v]);
    EXPECT_EQ(byte_count(*solution.types[v]).constant(), tables.variables[v].bytes);
  }
}

// Pads keep every extent, so that a larger image in a smaller batch fits as well; the labels
// determine the batch.
TEST(ChainerShapes, ReportsAmbiguityAndTakesTheLikeliest) {
  const Tables tables = fixture("residual");
  const ShapeSolution solution = solve_shapes(tables, "residual");
  ASSERT_TRUE(solution.is_solved);
  EXPECT_TRUE(solution.is_ambiguous);
  for (std::size_t v = 0; v < tables.variables.size(); ++v) {
    if (tables.variables[v].name == "0") {
      EXPECT_EQ(to_string(*solution.types[v]), "f32[4, 3, 20, 20]");
    }
  }
  const Page page = documents::find_document_format("chainer")
                        ->read(print_tables(tables), "residual")
                        ->describe();
  EXPECT_NE(page.sections[0].text.find("Other shapes would give the same sizes"),
            std::string::npos);
}

TEST(ChainerShapes, ClassNumbersMayHave64Bits) {
  std::string text = read_fixture("residual_chainer.graph.txt");
  const std::size_t at = text.find(" 16 1\n");
  const Tables tables = parse_tables(text.replace(at, 6, " 32 1\n"), "residual");
  const ShapeSolution solution = solve_shapes(tables, "residual");
  ASSERT_TRUE(solution.is_solved);
  for (std::size_t v = 0; v < tables.variables.size(); ++v) {
    if (tables.variables[v].name == "1") {
      EXPECT_EQ(to_string(*solution.types[v]), "i64[4]");
    }
  }
}

// One function over inputs of these sizes; prints the types of all values.
struct Record {
  std::string name, attributes;
  std::vector<std::string> inputs;  // "bytes name"
  std::int64_t output_bytes;
};
Tables one_record(const Record& record) {
  std::string text = concat(record.inputs.size() + 1, " 2\n"), read, tagged, made;
  for (std::size_t k = 0; k < record.inputs.size(); ++k) {
    text += concat(k, " ", record.inputs[k], "\n");
    read += concat(k, " _\n");
    tagged += concat(k, " input\n");
    made += concat(k, "\n");
  }
  const std::size_t count = record.inputs.size();
  text += concat(count, " ", record.output_bytes, " _\n");
  text += concat("forward\n", count, " 1\n", read, count, "\n", record.name, "\n",
                 record.attributes, "\n");
  text += concat("backward\n", count + 1, " ", count, "\n", count, " gradient\n", tagged, made,
                 record.name, "\n", record.attributes, "\n");
  return parse_tables(text, "record");
}
std::vector<std::string> types_of(const Record& record) {
  const Tables tables = one_record(record);
  const ShapeSolution solution = solve_shapes(tables, "record");
  std::vector<std::string> types;
  for (const auto& type : solution.types) {
    types.push_back(solution.is_solved && type ? to_string(*type) : "?");
  }
  return types;
}
using Types = std::vector<std::string>;

TEST(ChainerShapes, ShapeRulesOfFunctions) {
  const std::string conv =
      R"("ph": 0, "pw": 0, "dy": 1, "dx": 1, "groups": 1, "cover_all": false})";
  // 2 x 3 x 9 x 9, 5 filters of 3 x 3, stride 2: 4 x 4.
  EXPECT_EQ(types_of({"Convolution2DFunction",
                      R"({"sy": 2, "sx": 2, )" + conv,
                      {"1944 0", "540 /W", "20 /b"},
                      640}),
            (Types{"f32[2, 3, 9, 9]", "f32[5, 3, 3, 3]", "f32[5]", "f32[2, 5, 4, 4]"}));
  // The same windows in three groups: a filter has one channel.
  EXPECT_EQ(
      types_of(
          {"Convolution2DFunction",
           R"({"sy": 2, "sx": 2, "ph": 0, "pw": 0, "dy": 1, "dx": 1, "groups": 3, "cover_all": false})",
           {"1944 0", "216 /W", "24 /b"},
           768}),
      (Types{"f32[2, 3, 9, 9]", "f32[6, 1, 3, 3]", "f32[6]", "f32[2, 6, 4, 4]"}));
  EXPECT_EQ(types_of({"LinearFunction", "{}", {"120 0", "80 /W", "16 /b"}, 96}),
            (Types{"f32[6, 5]", "f32[4, 5]", "f32[4]", "f32[6, 4]"}));
  EXPECT_EQ(types_of({"Reshape", R"({"shape": [2, 3, -1]})", {"96 0"}, 96})[1], "f32[2, 3, 4]");
  EXPECT_EQ(
      types_of(
          {"Transpose", R"({"axes": [1, 0], "_input_types": ["f32[2, 3]"]})", {"24 0"}, 24})[1],
      "f32[3, 2]");
  EXPECT_EQ(types_of({"Sum",
                      R"({"axis": [0], "keepdims": false, "_input_types": ["f32[2, 3]"]})",
                      {"24 0"},
                      12})[1],
            "f32[3]");
  EXPECT_EQ(types_of({"Sum",
                      R"({"axis": null, "keepdims": true, "_input_types": ["f32[2, 3]"]})",
                      {"24 0"},
                      4})[1],
            "f32[1, 1]");
  EXPECT_EQ(
      types_of(
          {"GetItem",
           R"json({"slices": "(slice(1, -1, None), 0, None, slice(None, None, 2))", "_input_types": ["f32[5, 2, 6]"]})json",
           {"240 0"},
           36})[1],
      "f32[3, 1, 3]");
  EXPECT_EQ(
      types_of({"EmbedIDFunction",
                R"({"ignore_label": null, "_w_shape": [7, 4], "_output_types": ["f32[3, 4]"]})",
                {"12 0", "112 /W"},
                48}),
      (Types{"i32[3]", "f32[7, 4]", "f32[3, 4]"}));
  EXPECT_EQ(
      types_of({"MatMul",
                R"({"transa": true, "transb": false, "_input_types": ["f32[3, 2]", "f32[3, 5]"]})",
                {"24 0", "60 1"},
                40})[2],
      "f32[2, 5]");
  EXPECT_EQ(
      types_of(
          {"Unpooling2D",
           R"({"kh": 2, "kw": 2, "sy": 2, "sx": 2, "ph": 0, "pw": 0, "outh": 6, "outw": 6, "cover_all": false})",
           {"72 0"},
           288}),
      (Types{"f32[1, 2, 3, 3]", "f32[1, 2, 6, 6]"}));
  EXPECT_EQ(types_of({"ResizeImages", R"({"out_H": 7, "out_W": 7})", {"72 0"}, 392}),
            (Types{"f32[1, 2, 3, 3]", "f32[1, 2, 7, 7]"}));
  EXPECT_EQ(types_of({"ReLU", "{}", {"12 0"}, 12}), (Types{"f32[3]", "f32[3]"}));
  EXPECT_EQ(types_of({"Add", "{}", {"12 0", "12 1"}, 16}), (Types{"?", "?", "?"}));
}

std::string import_message(const Tables& tables) {
  return error_text([&] { import_tables(tables, "file"); });
}

TEST(ChainerShapes, ReportsContradictions) {
  const std::string message =
      import_message(one_record({"LinearFunction", "{}", {"120 0", "80 /W", "20 /b"}, 96}));
  EXPECT_NE(message.find("no shapes give every tensor its size"), std::string::npos) << message;
  EXPECT_NE(message.find("LinearFunction of line"), std::string::npos) << message;
  EXPECT_NE(message.find("line 5, column 3"), std::string::npos) << message;
}

TEST(ChainerShapes, RefusesImpossibleAttributes) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"kh": 0, "kw": 2, "sy": 2, "sx": 2, "ph": 0, "pw": 0})", "'kh' is out of range"},
      {R"({"kh": 2, "kw": 2, "sy": 2, "sx": 0, "ph": 0, "pw": 0})", "'sx' is out of range"},
      {R"({"kh": 2, "kw": 2, "sy": 2, "sx": 2, "ph": -1, "pw": 0})", "'ph' is out of range"},
      {R"({"kh": 2, "kw": 2, "sy": 2, "sx": 2, "ph": 0})", "needs the attribute 'pw'"},
      {R"({"kh": 2, "kw": "2", "sy": 2, "sx": 2, "ph": 0, "pw": 0})", "'kw' is no integer"},
      {R"({"kh": 2, "kw": 2, "sy": 2, "sx": 2, "ph": 0, "pw": 0, "cover_all": 1})",
       "not true or false"},
  };
  for (const auto& [attributes, part] : cases) {
    const std::string message =
        import_message(one_record({"MaxPooling2D", attributes, {"64 0"}, 16}));
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_NE(message.find("line 9, column"), std::string::npos) << message;
  }
}

TEST(ChainerShapes, CountsUnknownFunctions) {
  const Tables tables = one_record({"ROIPooling2D", "{}", {"64 0", "20 1"}, 16});
  try {
    import_tables(tables, "file");
    ADD_FAILURE() << "was imported";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
    EXPECT_NE(std::string(error.what()).find("ROIPooling2D (1)"), std::string::npos)
        << error.what();
  }
}

// The nodes of one function, without its constants' elements.
std::string nodes_of(const Record& record) {
  const Graph graph = import_tables(one_record(record), "record");
  std::string text;
  for (const NodeId id : graph.nodes_in_order()) {
    const Node& node = graph.node(id);
    if (graph.constant_of(node.results[0]) != nullptr) continue;
    text += concat(text.empty() ? "" : "; ", node.op->name);
    for (const auto& [name, value] : node.attrs) text += concat(" ", name, "=", print(value));
  }
  return concat(text, " -> ", graph.value(graph.outputs()[0]).type);
}

TEST(ChainerShapes, FunctionsBecomeOperators) {
  const std::string image = R"("_input_types": ["f32[1, 2, 6, 6]"]})";
  const struct {
    Record record;
    const char* nodes;
  } cases[] = {
      {{"AveragePooling2D",
        R"({"kh": 3, "kw": 3, "sy": 1, "sx": 1, "ph": 1, "pw": 1, )" + image,
        {"288 0"},
        288},
       "average_pool count_include_pad=true kernel_shape=[3, 3] pads=[1, 1, 1, 1] -> f32[1, 2, 6, "
       "6]"},
      {{"AveragePooling2D",
        R"({"kh": 2, "kw": 2, "sy": 2, "sx": 2, "ph": 0, "pw": 0, )" + image,
        {"288 0"},
        72},
       "average_pool kernel_shape=[2, 2] strides=[2, 2] -> f32[1, 2, 3, 3]"},
      {{"MaxPooling2D",
        R"({"kh": 3, "kw": 3, "sy": 2, "sx": 2, "ph": 0, "pw": 0, "cover_all": true, )" + image,
        {"288 0"},
        72},
       "max_pool ceil_mode=true kernel_shape=[3, 3] strides=[2, 2] -> f32[1, 2, 3, 3]"},
      {{"MaxPooling2D",
        R"({"kh": 1, "kw": 1, "sy": 4, "sx": 4, "ph": 2, "pw": 2, "cover_all": true, )" + image,
        {"288 0"},
        128},
       "max_pool kernel_shape=[1, 1] pads=[2, 2, 5, 5] strides=[4, 4] -> f32[1, 2, 4, 4]"},
      {{"MaxPooling2D",
        R"({"kh": 2, "kw": 2, "sy": 2, "sx": 2, "ph": 0, "pw": 0, "cover_all": false, )" + image,
        {"288 0"},
        72},
       "max_pool kernel_shape=[2, 2] strides=[2, 2] -> f32[1, 2, 3, 3]"},
      {{"Convolution2DFunction",
        R"({"sy": 2, "sx": 2, "ph": 0, "pw": 0, "dy": 1, "dx": 1, "groups": 1, "cover_all": true, "_input_types": ["f32[1, 2, 6, 6]", "f32[1, 2, 3, 3]"]})",
        {"288 0", "72 /W"},
        36},
       "conv pads=[0, 0, 1, 1] strides=[2, 2] -> f32[1, 1, 3, 3]"},
      {{"Convolution2DFunction",
        R"({"sy": 1, "sx": 1, "ph": 2, "pw": 2, "dy": 2, "dx": 2, "groups": 2, "cover_all": false, "_input_types": ["f32[1, 2, 6, 6]", "f32[2, 1, 3, 3]"]})",
        {"288 0", "72 /W"},
        288},
       "conv dilations=[2, 2] groups=2 pads=[2, 2, 2, 2] -> f32[1, 2, 6, 6]"},
      {{"Deconvolution2DFunction",
        R"({"sy": 2, "sx": 2, "ph": 1, "pw": 1, "outh": 12, "outw": 12, "dy": 1, "dx": 1, "groups": 1, "_input_types": ["f32[1, 2, 6, 6]", "f32[2, 3, 3, 3]"]})",
        {"288 0", "216 /W"},
        1728},
       "conv_transpose output_padding=[1, 1] pads=[1, 1, 1, 1] strides=[2, 2] -> f32[1, 3, 12, "
       "12]"},
      {{"Unpooling2D",
        R"({"kh": 2, "kw": 2, "sy": 2, "sx": 2, "ph": 0, "pw": 0, "outh": 12, "outw": 12, )" +
            image,
        {"288 0"},
        1152},
       "resize axes=[2, 3] coordinates=\"asymmetric\" rounding=\"floor\" sizes=[12, 12] -> f32[1, "
       "2, 12, 12]"},
      {{"ResizeImages", R"({"out_H": 3, "out_W": 9, )" + image, {"288 0"}, 216},
       "resize axes=[2, 3] coordinates=\"align_corners\" mode=\"linear\" sizes=[3, 9] -> f32[1, 2, "
       "3, 9]"},
      {{"LocalResponseNormalization",
        R"({"n": 5, "k": 2, "alpha": 0.25, "beta": 0.75, )" + image,
        {"288 0"},
        288},
       "lrn alpha=1.25 bias=2.0 size=5 -> f32[1, 2, 6, 6]"},
      {{"LeakyReLU", R"({"slope": 0.25})", {"8 0"}, 8}, "leaky_relu alpha=0.25 -> f32[2]"},
      {{"ELU", R"({"alpha": 0.5})", {"8 0"}, 8}, "elu alpha=0.5 -> f32[2]"},
      {{"ClippedReLU", R"({"cap": 6.0})", {"8 0"}, 8}, "clip -> f32[2]"},
      {{"Softplus", R"({"beta": 2.0})", {"8 0"}, 8}, "mul; softplus; div -> f32[2]"},
      {{"Dropout", R"({"dropout_ratio": 0.5})", {"8 0"}, 8}, "dropout -> f32[2]"},
      {{"SubFromConstant", R"({"value": 1})", {"8 0"}, 8}, "sub -> f32[2]"},
      {{"PowVarConst", R"({"value": 2})", {"8 0"}, 8}, "pow -> f32[2]"},
      {{"MultiAdd", "{}", {"8 0", "8 1", "8 2"}, 8}, "add; add -> f32[2]"},
      {{"Mul", R"({"_input_types": ["f32[2, 3]", "f32[3]"]})", {"24 0", "12 1"}, 24},
       "mul -> f32[2, 3]"},
      {{"Concat",
        R"({"axis": 1, "_input_types": ["f32[2, 3]", "f32[2, 1]"]})",
        {"24 0", "8 1"},
        32},
       "concat axis=1 -> f32[2, 4]"},
      {{"GetItem",
        R"json({"slices": "(slice(1, None, None), -1)", "_input_types": ["f32[2, 3]"]})json",
        {"24 0"},
        4},
       "slice axes=[0, 1] ends=[2, 3] starts=[1, -1]; squeeze axes=[1] -> f32[1]"},
      {{"GetItem", R"({"slices": [1], "_input_types": ["f32[2, 3]"]})", {"24 0"}, 12},
       "slice axes=[0] ends=[2] starts=[1]; squeeze axes=[0] -> f32[3]"},
      {{"GetItem",
        R"json({"slices": "(Ellipsis, None)", "_input_types": ["f32[2, 3]"]})json",
        {"24 0"},
        24},
       "unsqueeze axes=[2] -> f32[2, 3, 1]"},
      {{"Transpose", R"({"axes": null, "_input_types": ["f32[2, 3]"]})", {"24 0"}, 24},
       "transpose -> f32[3, 2]"},
      {{"BroadcastTo", R"({"_shape": [4, 3], "_input_types": ["f32[1, 3]"]})", {"12 0"}, 48},
       "expand shape=[4, 3] -> f32[4, 3]"},
      {{"ExpandDims", R"({"axis": -1, "_input_types": ["f32[2, 3]"]})", {"24 0"}, 24},
       "unsqueeze axes=[-1] -> f32[2, 3, 1]"},
      {{"Squeeze", R"({"axis": null, "_input_types": ["f32[2, 1, 3]"]})", {"24 0"}, 24},
       "squeeze -> f32[2, 3]"},
      {{"Squeeze", R"({"axis": [1], "_input_types": ["f32[2, 1, 3]"]})", {"24 0"}, 24},
       "squeeze axes=[1] -> f32[2, 3]"},
      {{"Sum", R"({"axis": [1], "keepdims": true, "_input_types": ["f32[2, 3]"]})", {"24 0"}, 8},
       "reduce_sum axes=[1] -> f32[2, 1]"},
      {{"MatMul",
        R"({"transa": true, "transb": true, "_input_types": ["f32[3, 2]", "f32[5, 3]"]})",
        {"24 0", "60 1"},
        40},
       "transpose perm=[1, 0]; transpose perm=[1, 0]; matmul -> f32[2, 5]"},
      {{"LinearFunction", "{}", {"120 0", "80 /W"}, 96},
       "transpose perm=[1, 0]; matmul -> f32[6, 4]"},
      {{"EmbedIDFunction",
        R"({"_w_shape": [7, 4], "_input_types": ["i32[3]", "f32[7, 4]"]})",
        {"12 0", "112 /W"},
        48},
       "gather -> f32[3, 4]"},
      {{"FixedBatchNormalization",
        R"({"eps": 0.001, "key_axis": [1], "_input_types": ["f32[1, 2, 6, 6]", "f32[2]", "f32[2]", "f32[2]", "f32[2]"]})",
        {"288 0", "8 /g", "8 /b", "8 /m", "8 /v"},
        288},
       "batch_norm epsilon=0.001 -> f32[1, 2, 6, 6]"},
      {{"SoftmaxCrossEntropy",
        R"({"reduce": "no", "normalize": true, "ignore_label": 5, "_input_types": ["f32[4, 3]", "i32[4]"]})",
        {"48 0", "16 1"},
        16},
       "log_softmax axis=1; nll_loss ignore_index=5 reduction=\"none\" -> f32[4]"},
      {{"SoftmaxCrossEntropy",
        R"({"reduce": "mean", "normalize": false, "ignore_label": -1, "_input_types": ["f32[4, 3]", "i32[4]"]})",
        {"48 0", "16 1"},
        4},
       "log_softmax axis=1; nll_loss ignore_index=-1 reduction=\"sum\"; mul -> f32[]"},
  };
  for (const auto& each : cases) EXPECT_EQ(nodes_of(each.record), each.nodes) << each.record.name;
}

}  // namespace
}  // namespace tenon::documents::chainer::chainer_shapes_test
