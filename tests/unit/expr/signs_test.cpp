#include "expr/analysis.h"
#include "expr/homogeneous.h"
#include "expr/signs.h"
#include "ir/text.h"
#include "ops/definition/registry.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tenon::expr_signs_test {
namespace {

// Inferred signs of one node's result for unconstrained operands, except the first, which has the
// signs `given`.
Signs signs(const std::string& node, Signs given = {}, const std::string& type = "f32[2, 3]") {
  const Graph graph = parse_graph(
      "graph (x: " + type + ", z: " + type + ") {\n  y = " + node + "\n  return y\n}\n", all_ops());
  const NodeId id = graph.value(graph.outputs().front()).producer;
  const OperandSigns operands{[&](std::size_t k) {
                                return graph.node(id).operands[k] == graph.inputs()[0] ? given
                                                                                       : Signs{};
                              },
                              [](std::size_t) { return std::nullopt; },
                              [&](std::size_t a, std::size_t b) {
                                return graph.node(id).operands[a] == graph.node(id).operands[b];
                              }};
  return signs_of(lowered(graph, id).front(), operands);
}

TEST(ExprSigns, InferredFromTheFunction) {
  for (const char* node : {"exp(x)", "sigmoid(x)", "softmax(x)", "softplus(x)", "abs(x)",
                           "mul(x, x)", "reduce_sum_square(x) {axes = [1]}"}) {
    EXPECT_TRUE(signs(node).is_never_negative) << node;
    EXPECT_TRUE(signs(node).is_never_minus_zero) << node;
  }
  for (const char* node : {"relu(x)", "reduce_l2(x) {axes = [1]}", "hard_sigmoid(x)", "sqrt(x)"}) {
    EXPECT_TRUE(signs(node).is_never_negative) << node;
  }
  for (const char* node :
       {"neg(x)", "add(x, z)", "mul(x, z)", "tanh(x)", "sub(x, x)", "log(x)", "sin(x)"}) {
    EXPECT_FALSE(signs(node).is_never_negative) << node;
  }
  EXPECT_FALSE(signs("relu(x)").is_never_minus_zero);  // negative zero gives either
}

TEST(ExprSigns, KeptByMovementAndAddition) {
  const Signs both{true, true};
  for (const char* node :
       {"transpose(x)", "reshape(x) {shape = [6]}", "add(x, x)", "reduce_mean(x) {axes = [0]}",
        "tanh(x)", "slice(x) {starts = [0], ends = [1], axes = [0]}", "concat(x, x) {axis = 0}"}) {
    EXPECT_TRUE(signs(node, both).is_never_negative) << node;
    EXPECT_TRUE(signs(node, both).is_never_minus_zero) << node;
  }
  EXPECT_FALSE(signs("add(x, z)", both).is_never_negative);
  // the sum of zeros with different signs is positive
  EXPECT_TRUE(signs("add(x, z)", both).is_never_minus_zero);
  EXPECT_FALSE(signs("div(x, z)", both).is_never_negative);
}

// Integers wrap.
TEST(ExprSigns, Integers) {
  const Signs both{true, true};
  EXPECT_FALSE(signs("add(x, x)", both, "i32[2]").is_never_negative);
  EXPECT_FALSE(signs("mul(x, x)", both, "i32[2]").is_never_negative);
  EXPECT_FALSE(signs("abs(x)", {}, "i32[2]").is_never_negative);
  EXPECT_TRUE(signs("relu(x)", {}, "i32[2]").is_never_negative);
  EXPECT_TRUE(signs("add(x, x)", {}, "u8[2]").is_never_negative);
}

bool grows_with_x(const std::string& node) {
  const Graph graph = parse_graph(
      "graph (x: f32[2, 3], z: f32[3]) {\n  y = " + node + "\n  return y\n}\n", all_ops());
  const NodeId id = graph.value(graph.outputs().front()).producer;
  const std::vector<ValueId>& operands = graph.node(id).operands;
  const auto x = std::ranges::find(operands, graph.inputs().front());
  return is_homogeneous(lowered(graph, id).front(), static_cast<std::size_t>(x - operands.begin()));
}

TEST(Homogeneous, InferredFromTheFunction) {
  for (const char* node : {"relu(x)", "leaky_relu(x) {alpha = 0.1}", "prelu(x, z)", "neg(x)",
                           "abs(x)", "mul(x, z)", "div(x, z)"}) {
    EXPECT_TRUE(grows_with_x(node)) << node;
  }
  for (const char* node : {"exp(x)", "add(x, z)", "hard_sigmoid(x)", "elu(x)", "div(z, x)",
                           "softmax(x)", "sign(x)", "hard_swish(x)"}) {
    EXPECT_FALSE(grows_with_x(node)) << node;
  }
}

}  // namespace
}  // namespace tenon::expr_signs_test
