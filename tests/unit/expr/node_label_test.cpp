#include "expr/node_label.h"
#include "ir/text.h"
#include "ops/definition/registry.h"

#include <gtest/gtest.h>

namespace tenon::node_label_test {
namespace {

std::string label_of_last(const std::string& text) {
  const Graph graph = parse_graph(text, all_ops());
  return node_label(graph, graph.last());
}

TEST(NodeLabel, OpAndSource) {
  EXPECT_EQ(label_of_last("graph (x: f32[4]) { y = relu(x) return y }"), "relu y");
  EXPECT_EQ(label_of_last("graph (x: f32[4]) { y = relu(x) @ \"act/Relu_3\" return y }"),
            "relu act/Relu_3");
}

// A group is named after its products, not after its last value; constants are not members.
TEST(NodeLabel, GroupWithContractions) {
  EXPECT_EQ(label_of_last(R"(graph (x: f32[4, 8], w: f32[8, 3]) {
    y = fused(x, w) group = graph (x: f32[4, 8], w: f32[8, 3]) {
      one = constant f32[] 1
      m = matmul(x, w) @ "fc1"
      s = add(m, one)
      y = relu(s)
      return y
    }
    return y
  })"),
            "matmul+add+relu fc1");
  EXPECT_EQ(label_of_last(R"(graph (x: f32[8, 8]) {
    d = fused(x) group = graph (x: f32[8, 8]) {
      a = matmul(x, x)
      b = matmul(a, x)
      c = matmul(b, x)
      d = matmul(c, x)
      e = relu(d)
      f = tanh(e)
      return f
    }
    return d
  })"),
            "matmul+matmul+matmul+matmul+2 a, b+2");
}

TEST(NodeLabel, GroupWithoutContractions) {
  EXPECT_EQ(label_of_last(R"(graph (x: f32[4, 8]) {
    y = fused(x) group = graph (x: f32[4, 8]) {
      t = transpose(x) {perm = [1, 0]}
      e = exp(t)
      y = relu(e)
      return y
    }
    return y
  })"),
            "transpose+exp+relu e");
}

}  // namespace
}  // namespace tenon::node_label_test
