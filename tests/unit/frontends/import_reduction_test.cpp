#include "unit/frontends/onnx_model.h"

#include <gtest/gtest.h>

namespace tenon::frontends::onnx::testing_models::import_reduction_test {
namespace {

// A model of one node that reads graph inputs of the given shapes.
struct OneNode {
  OneNode(const std::string& op_type, int opset,
          const std::vector<std::pair<std::string, std::vector<std::string>>>& inputs,
          const std::vector<std::string>& outputs = {"y"})
      : model(new_model(opset)), node(*model.mutable_graph()->add_node()) {
    node.set_op_type(op_type);
    for (const auto& [name, dims] : inputs) {
      node.add_input(name);
      if (!name.empty()) add_input(*model.mutable_graph(), name, dims);
    }
    for (const std::string& output : outputs) {
      node.add_output(output);
      if (!output.empty()) add_output(*model.mutable_graph(), output);
    }
  }
  // The nodes of the graph, without its head and its return.
  std::string lines() const {
    const std::string text = imported(model);
    const std::size_t begin = text.find('\n') + 1, end = text.rfind("  return");
    return begin < end && end != std::string::npos ? text.substr(begin, end - begin) : text;
  }

  ModelProto model;
  NodeProto& node;
};

void add_integers(NodeProto& node, const char* name, const std::vector<std::int64_t>& values) {
  auto& list = *node.add_attribute();
  list.set_name(name);
  list.set_type(onnx_schema::AttributeProto::INTS);
  for (const std::int64_t value : values) list.add_ints(value);
}

TEST(ImportShape, AttributesThatBecameInputs) {
  OneNode squeeze("Squeeze", 11, {{"x", {"1", "1", "3"}}});
  add_integers(squeeze.node, "axes", {1});
  EXPECT_EQ(squeeze.lines(), "  y = squeeze(x) {axes = [1]}\n");
  OneNode slice("Slice", 9, {{"x", {"5", "3"}}});
  add_integers(slice.node, "starts", {1});
  add_integers(slice.node, "ends", {4});
  EXPECT_EQ(slice.lines(), "  y = slice(x) {starts = [1], ends = [4]}\n");
  OneNode reshape("Reshape", 1, {{"x", {"2", "3"}}});
  add_integers(reshape.node, "shape", {3, 2});
  EXPECT_EQ(reshape.lines(), "  y = reshape(x) {shape = [3, 2]}\n");
}

// If both are present, the input wins.
TEST(ImportReduction, AxesAreAnAttributeBeforeOpset18) {
  OneNode mean("ReduceMean", 11, {{"x", {"2", "3"}}});
  add_integers(mean.node, "axes", {-1});
  add_integer(mean.node, "keepdims", 0);
  EXPECT_EQ(mean.lines(), "  y = reduce_mean(x) {axes = [-1], keep_axes = false}\n");
}

TEST(ImportReduction, AxesAreAnInputSinceOpset18) {
  OneNode dynamic("ReduceMax", 18, {{"x", {"2", "3"}}});
  dynamic.node.add_input("axes");
  add_input(*dynamic.model.mutable_graph(), "axes", {"1"}, TensorProto::INT64);
  EXPECT_EQ(dynamic.lines(), "  y = reduce_max(x, axes = axes)\n");

  OneNode none("ReduceMax", 18, {{"x", {"2", "3"}}});
  add_integer(none.node, "noop_with_empty_axes", 1);
  EXPECT_EQ(none.lines(), "  y = reduce_max(x) {noop_if_empty = true}\n");
}

TEST(ImportNormalization, SoftmaxFlattensBeforeOpset13) {
  EXPECT_EQ(OneNode("Softmax", 12, {{"x", {"N", "3", "4"}}}).lines(),
            "  reshape = reshape(x) {shape = [N, 12], allow_zero = true}\n"
            "  softmax = softmax(reshape) {axis = 1}\n"
            "  y = reshape(softmax) {shape = [N, 3, 4], allow_zero = true}\n");
  EXPECT_EQ(OneNode("Softmax", 12, {{"x", {"N", "3"}}}).lines(), "  y = softmax(x)\n");
  EXPECT_EQ(OneNode("Softmax", 13, {{"x", {"N", "3", "4"}}}).lines(), "  y = softmax(x)\n");
}

TEST(ImportNormalization, SoftmaxRefusesAnAxisOutOfRange) {
  OneNode softmax("Softmax", 12, {{"x", {"2", "3"}}});
  add_integer(softmax.node, "axis", 5);
  EXPECT_EQ(imported(softmax.model),
            "Softmax: axis is outside the tensor's rank\n"
            "  at        m.onnx, node 'y' (Softmax)\n"
            "  expected  an axis in [-2, 2]\n"
            "  got       5");
}

TEST(ImportNormalization, GroupNormScalesByGroupBeforeOpset21) {
  OneNode by_group("GroupNormalization", 18, {{"x", {"N", "4", "5"}}, {"s", {"2"}}, {"b", {"2"}}});
  add_integer(by_group.node, "num_groups", 2);
  EXPECT_NE(by_group.lines().find("expand = expand(reshape) {shape = [2, 2]}"), std::string::npos);

  OneNode by_channel("GroupNormalization", 21,
                     {{"x", {"N", "4", "5"}}, {"s", {"4"}}, {"b", {"4"}}});
  add_integer(by_channel.node, "num_groups", 2);
  EXPECT_EQ(by_channel.lines(), "  y = group_norm(x, s, b) {groups = 2}\n");

  OneNode none("GroupNormalization", 21, {{"x", {"N", "4", "5"}}, {"s", {"4"}}, {"b", {"4"}}});
  add_integer(none.node, "num_groups", 0);
  EXPECT_EQ(imported(none.model),
            "GroupNormalization: there are no groups of channels\n"
            "  at        m.onnx, node 'y' (GroupNormalization)\n"
            "  expected  x: [N, C, …] and num_groups of 1 or more\n"
            "  got       x: f32[N, 4, 5], num_groups: 0");
}

TEST(ImportAttention, ConcatenatesCacheAndKeys) {
  OneNode attention("Attention", 23,
                    {{"q", {"B", "2", "3", "8"}},
                     {"k", {"B", "2", "3", "8"}},
                     {"v", {"B", "2", "3", "8"}},
                     {"", {}},
                     {"pk", {"B", "2", "P", "8"}},
                     {"pv", {"B", "2", "P", "8"}}},
                    {"y", "keys", "values"});
  add_integer(attention.node, "is_causal", 1);
  EXPECT_EQ(attention.lines(),
            "  keys = concat(pk, k) {axis = 2}\n"
            "  values = concat(pv, v) {axis = 2}\n"
            "  y = attention(q, keys, values) {causal = true, causal_offset = P}\n");
}

TEST(ImportAttention, RefusesMissingHeads) {
  OneNode attention("Attention", 23,
                    {{"q", {"1", "3", "8"}}, {"k", {"1", "3", "8"}}, {"v", {"1", "3", "8"}}});
  EXPECT_EQ(
      imported(attention.model),
      "Attention: the input cannot be split into heads\n"
      "  at        m.onnx, node 'y' (Attention)\n"
      "  expected  rank 4, or rank 3 with a last extent that is a multiple of the number of heads\n"
      "  got       f32[1, 3, 8] and 0 heads");
  OneNode mode(
      "Attention", 23,
      {{"q", {"1", "1", "3", "8"}}, {"k", {"1", "1", "3", "8"}}, {"v", {"1", "1", "3", "8"}}});
  add_integer(mode.node, "qk_matmul_output_mode", 4);
  EXPECT_EQ(imported(mode.model),
            "Attention: no such qk_matmul_output_mode\n"
            "  at        m.onnx, node 'y' (Attention)\n"
            "  expected  0, 1, 2 or 3\n"
            "  got       4");
}

TEST(ImportAttention, LinearAttentionRefusesOtherRules) {
  OneNode rule("LinearAttention", 27,
               {{"q", {"1", "3", "8"}}, {"k", {"1", "3", "8"}}, {"v", {"1", "3", "8"}}});
  add_text(rule.node, "update_rule", "square");
  EXPECT_EQ(imported(rule.model),
            "LinearAttention: no such update_rule\n"
            "  at        m.onnx, node 'y' (LinearAttention)\n"
            "  expected  linear, gated, delta or gated_delta\n"
            "  got       square");
  OneNode heads("LinearAttention", 27,
                {{"q", {"1", "3", "8"}}, {"k", {"1", "3", "8"}}, {"v", {"1", "3", "8"}}});
  add_text(heads.node, "update_rule", "linear");
  EXPECT_EQ(imported(heads.model),
            "LinearAttention: the heads do not fit\n"
            "  at        m.onnx, node 'y' (LinearAttention)\n"
            "  expected  q_num_heads that is a multiple of kv_num_heads\n"
            "  got       0 and 0");
}

OneNode small_rnn() {
  return {"RNN", 14, {{"x", {"T", "1", "2"}}, {"w", {"1", "3", "2"}}, {"r", {"1", "3", "3"}}}};
}

TEST(ImportRecurrent, RnnBecomesScan) {
  OneNode rnn = small_rnn();
  add_text(rnn.node, "direction", "reverse");
  EXPECT_EQ(
      rnn.lines(),
      "  constant = constant i64[] 0\n"
      "  gather = gather(w, constant)\n"
      "  transpose = transpose(gather) {perm = [1, 0]}\n"
      "  matmul = matmul(x, transpose)\n"
      "  constant_1 = constant i64[] 0\n"
      "  gather_1 = gather(r, constant_1)\n"
      "  transpose_1 = transpose(gather_1) {perm = [1, 0]}\n"
      "  constant_2 = constant f32[] 0\n"
      "  expand = expand(constant_2) {shape = [1, 3]}\n"
      "  scan, scan_1 = scan(expand, matmul, transpose_1) {state_count = 1, input_reverse = [1], "
      "output_reverse = [1]} body = graph step (h: f32[1, 3], projected: f32[1, 3], "
      "recurrent: f32[3, 3]) {\n"
      "    matmul = matmul(h, recurrent)\n"
      "    add = add(projected, matmul)\n"
      "    tanh = tanh(add)\n"
      "    identity = identity(tanh)\n"
      "    return tanh, identity\n"
      "  }\n"
      "  y = reshape(scan_1) {shape = [T, 1, 1, 3], allow_zero = true}\n");
}

TEST(ImportRecurrent, RefusesUnknownDirectionsAndActivations) {
  OneNode direction = small_rnn();
  add_text(direction.node, "direction", "up");
  EXPECT_EQ(imported(direction.model),
            "RNN: no such direction\n"
            "  at        m.onnx, node 'y' (RNN)\n"
            "  expected  forward, reverse or bidirectional\n"
            "  got       up");
  OneNode activation = small_rnn();
  auto& names = *activation.node.add_attribute();
  names.set_name("activations");
  names.set_type(onnx_schema::AttributeProto::STRINGS);
  names.add_strings("Tan");
  EXPECT_EQ(imported(activation.model),
            "no activation is called 'Tan'\n"
            "  at        m.onnx, node 'y' (RNN)\n"
            "  expected  one of Affine, Elu, HardSigmoid, LeakyRelu, Relu, ScaledTanh, Sigmoid, "
            "Softplus, Softsign, Tanh, ThresholdedRelu");
  OneNode rank("RNN", 14, {{"x", {"4", "2"}}, {"w", {"1", "3", "2"}}, {"r", {"1", "3", "3"}}});
  EXPECT_EQ(imported(rank.model),
            "RNN: inputs have the wrong rank\n"
            "  at        m.onnx, node 'y' (RNN)\n"
            "  expected  X: [steps, batch, size], R: [directions, gates, hidden]\n"
            "  got       X: [4, 2], R: [1, 3, 3]");
}

}  // namespace
}  // namespace tenon::frontends::onnx::testing_models::import_reduction_test
