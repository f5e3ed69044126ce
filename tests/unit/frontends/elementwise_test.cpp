#include "frontends/onnx/export.h"
#include "ops/definition/registry.h"
#include "unit/frontends/onnx_model.h"

#include <gtest/gtest.h>

namespace tenon::frontends::onnx::testing_models::elementwise_test {
namespace {

onnx_schema::AttributeProto& add_integer(NodeProto& node, const std::string& name,
                                         std::int64_t value) {
  auto& attr = *node.add_attribute();
  attr.set_name(name);
  attr.set_type(onnx_schema::AttributeProto::INT);
  attr.set_i(value);
  return attr;
}

onnx_schema::AttributeProto& add_text(NodeProto& node, const std::string& name,
                                      const std::string& value) {
  auto& attr = *node.add_attribute();
  attr.set_name(name);
  attr.set_type(onnx_schema::AttributeProto::STRING);
  attr.set_s(value);
  return attr;
}

/// A model of one node that reads float inputs `a`, `b`, … of the given extents and makes `y`.
struct OneNode {
  OneNode(int opset, const std::string& op_type,
          const std::vector<std::vector<std::string>>& inputs)
      : model(new_model(opset)) {
    std::vector<std::string> names;
    for (const auto& dims : inputs) {
      names.emplace_back(1, static_cast<char>('a' + names.size()));
      add_input(*model.mutable_graph(), names.back(), dims);
    }
    node = &add_node(*model.mutable_graph(), op_type, names, {"y"});
    add_output(*model.mutable_graph(), "y");
  }
  /// The lines between the graph's inputs and its outputs.
  std::string lines() const {
    const std::string text = imported(model);
    const std::size_t begin = text.find('\n') + 1, end = text.find("  return");
    return end == std::string::npos ? text : text.substr(begin, end - begin);
  }
  ModelProto model;
  NodeProto* node = nullptr;
};

TEST(Elementwise, BroadcastsAlongAxesBeforeOpset7) {
  OneNode add(6, "Add", {{"2", "3", "4", "5"}, {"3", "4"}});
  add_integer(*add.node, "broadcast", 1);
  add_integer(*add.node, "axis", 1);
  EXPECT_EQ(add.lines(),
            "  reshape = reshape(b) {shape = [3, 4, 1], allow_zero = true}\n"
            "  y = add(a, reshape)\n");
}

TEST(Elementwise, SlopesPerChannelBeforeOpset7) {
  EXPECT_EQ(OneNode(6, "PRelu", {{"2", "3", "4"}, {"3"}}).lines(),
            "  reshape = reshape(b) {shape = [3, 1], allow_zero = true}\n"
            "  y = prelu(a, reshape)\n");
  EXPECT_EQ(OneNode(9, "PRelu", {{"2", "3"}, {"3"}}).lines(), "  y = prelu(a, b)\n");
}

TEST(Elementwise, BoundsAreAttributesBeforeOpset11) {
  OneNode old(6, "Clip", {{"2"}});
  add_float(*old.node, "max", 6);
  EXPECT_EQ(old.lines(), "  constant = constant f32[] 6\n  y = clip(a, max = constant)\n");
  EXPECT_EQ(OneNode(13, "Clip", {{"2"}, {}}).lines(), "  y = clip(a, b)\n");
}

TEST(Elementwise, CastTargetsAreNamesBeforeOpset6) {
  OneNode old(1, "Cast", {{"2"}});
  add_text(*old.node, "to", "INT64");
  EXPECT_EQ(old.lines(), "  y = cast(a) {to = i64}\n");
  OneNode narrow(19, "Cast", {{"2"}});
  add_integer(*narrow.node, "to", TensorProto::FLOAT8E5M2);
  add_integer(*narrow.node, "saturate", 0);
  EXPECT_EQ(narrow.lines(), "  y = cast(a) {to = f8e5m2, saturate = false}\n");
  OneNode scale(24, "Cast", {{"2"}});
  add_integer(*scale.node, "to", TensorProto::FLOAT8E8M0);
  add_text(*scale.node, "round_mode", "nearest");
  EXPECT_EQ(scale.lines(), "  y = cast(a) {to = f8e8m0, rounding = nearest}\n");
  OneNode text(13, "Cast", {{"2"}});
  add_integer(*text.node, "to", TensorProto::STRING);
  EXPECT_EQ(text.lines(), "  y = cast_text(a) {to = string}\n");
}

TEST(Elementwise, VariadicInputs) {
  EXPECT_EQ(OneNode(13, "Max", {{"2"}}).lines(), "  y = identity(a)\n");
  EXPECT_EQ(OneNode(13, "Mean", {{"2"}, {"2"}, {"1"}}).lines(),
            "  add = add(a, b)\n"
            "  add_1 = add(add, c)\n"
            "  constant = constant f32[] 3\n"
            "  y = div(add_1, constant)\n");
}

TEST(Elementwise, NewActivations) {
  EXPECT_EQ(OneNode(18, "Mish", {{"2"}}).lines(), "  y = mish(a)\n");
  OneNode gelu(20, "Gelu", {{"2"}});
  add_text(*gelu.node, "approximate", "tanh");
  EXPECT_EQ(gelu.lines(), "  y = gelu(a) {approximate = tanh}\n");
  OneNode swish(24, "Swish", {{"2"}});
  add_float(*swish.node, "alpha", 0.5F);
  EXPECT_EQ(swish.lines(), "  y = swish(a) {alpha = 0.5}\n");
}

TEST(Elementwise, BlockwiseScales) {
  OneNode blocked(21, "QuantizeLinear", {{"4", "6"}, {"4", "3"}});
  add_integer(*blocked.node, "axis", -1);
  add_integer(*blocked.node, "block_size", 2);
  add_integer(*blocked.node, "output_dtype", TensorProto::INT4);
  EXPECT_EQ(blocked.lines(), "  y = quantize_linear(a, b) {axis = -1, block_size = 2, to = i4}\n");
}

TEST(Elementwise, DropoutIsIdentityInInference) {
  OneNode dropout(13, "Dropout", {{"N", "3"}});
  dropout.node->add_output("mask");
  EXPECT_EQ(dropout.lines(),
            "  y = identity(a)\n"
            "  constant = constant bool[] true\n"
            "  mask = expand(constant) {shape = [N, 3]}\n");
}

// Each op round-trips as itself, except for those without an operator in a common opset.
TEST(Elementwise, ExportedOpsRoundTrip) {
  const std::string text =
      "graph g (x: f32[2, 3], b: f32[3], p: bool[3], q: bool[3], u: u8[3], s: f32[], t: string[3]) "
      "{\n"
      "  v0 = abs(x)\n"
      "  v1 = celu(v0) {alpha = 0.5}\n"
      "  v2 = shrink(v1) {bound = 0.25, bias = 0.5}\n"
      "  v3 = hard_sigmoid(v2) {alpha = 0.25, beta = 0.75}\n"
      "  v4 = gelu(v3) {approximate = tanh}\n"
      "  v5 = sub(v4, b)\n"
      "  v6 = pow(v5, b)\n"
      "  v7 = mod(v6, b) {sign = dividend}\n"
      "  v8 = maximum(v7, b)\n"
      "  v9 = clip(v8, max = s)\n"
      "  v10 = prelu(v9, b)\n"
      "  v11 = where(p, v10, b)\n"
      "  v12 = cast(v11) {to = f8e4m3fn, saturate = false}\n"
      "  v13 = dequantize_linear(v12, s)\n"
      "  v14 = quantize_linear(v13, b) {to = i4}\n"
      "  v15 = less_equal(v13, b)\n"
      "  v16 = logical_xor(v15, q)\n"
      "  v17 = is_inf(v13) {positive = false}\n"
      "  v18 = shift_left(u, u)\n"
      "  v19 = bit_and(v18, u)\n"
      "  v20 = mod(v19, u)\n"
      "  v21 = equal(t, t)\n"
      "  v22 = cast_text(t) {to = f32}\n"
      "  v23, mask = dropout(v22, s) {seed = 7}\n"
      "  return v14, v16, v17, v20, v21, v23, mask\n"
      "}\n";
  ModelProto model;
  ASSERT_TRUE(model.ParseFromString(export_onnx(parse_graph(text, all_ops()), ExportOptions{})));
  std::string back = imported(model);
  // Training is an input in ONNX, and true is its constant.
  const std::string training = "  const = constant bool[] true\n";
  if (const std::size_t at = back.find(training); at != std::string::npos) {
    back.erase(at, training.size());
  }
  const std::string with_training = "dropout(v22, s, const)";
  if (const std::size_t at = back.find(with_training); at != std::string::npos) {
    back.replace(at, with_training.size(), "dropout(v22, s)");
  }
  EXPECT_EQ(back, text);
}

}  // namespace
}  // namespace tenon::frontends::onnx::testing_models::elementwise_test
