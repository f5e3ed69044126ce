#include "expr/signature.h"
#include "ir/text.h"
#include "ops/definition/registry.h"

#include <gtest/gtest.h>

namespace tenon::signature_test {
namespace {

std::vector<std::string> signatures(const std::string& text) {
  const Graph graph = parse_graph(text, all_ops());
  std::vector<std::string> found;
  for (NodeId id : graph.nodes_in_order()) found.push_back(signature_of(graph, id));
  return found;
}

TEST(Signature, IgnoresNames) {
  const auto found = signatures(R"(graph (x: f32[2, 3], z: f32[2, 3]) {
  a = add(x, z)
  b = add(z, a)
  c = fused(a, b) group = graph (p: f32[2, 3], q: f32[2, 3]) { r = mul(p, q) s = relu(r) return s }
  d = fused(b, c) group = graph (e: f32[2, 3], f: f32[2, 3]) { g = mul(e, f) h = relu(g) return h }
  return d
})");
  EXPECT_EQ(found[0], found[1]);
  EXPECT_EQ(found[2], found[3]);
  EXPECT_NE(found[0], found[2]);
}

TEST(Signature, DistinguishesComputations) {
  const auto found = signatures(R"(graph (x: f32[2, 3], z: f32[2, 3], t: f32[2, 4], n: i64[2]) {
  a = add(x, z)
  b = add(x, x)
  c = sub(x, z)
  d = softmax(x) {axis = 0}
  e = softmax(x) {axis = 1}
  f = softmax(t) {axis = 1}
  g = fused(x, z) group = graph (p: f32[2, 3], q: f32[2, 3]) { r = sub(p, q) return r }
  h = fused(x, z) group = graph (p: f32[2, 3], q: f32[2, 3]) { r = sub(q, p) return r }
  i = fused(x) group = graph (p: f32[2, 3]) { k = constant f32[] 2 r = mul(p, k) return r }
  j = fused(x) group = graph (p: f32[2, 3]) { k = constant f32[] 3 r = mul(p, k) return r }
  return a, b, c, d, e, f, g, h, i, j
})");
  for (std::size_t a = 0; a < found.size(); ++a) {
    EXPECT_FALSE(found[a].empty());
    for (std::size_t b = 0; b < a; ++b) EXPECT_NE(found[a], found[b]) << a << " and " << b;
  }
}

// An attribute that is passed as an operand is part of the signature.
TEST(Signature, IncludesAttributeOperands) {
  const auto found = signatures(R"(graph (x: f32[2, 3]) {
  p = constant i64[1] [0]
  q = constant i64[1] [1]
  a = reduce_sum(x, p)
  b = reduce_sum(x, q)
  return a, b
})");
  EXPECT_NE(found[2], found[3]);
}

TEST(Signature, EmptyForControlFlow) {
  const auto found = signatures(R"(graph (c: bool[], x: f32[2]) {
  y = if(c, x) then = graph (a: f32[2]) { b = neg(a) return b } else = graph (a: f32[2]) { b = exp(a) return b }
  return y
})");
  EXPECT_EQ(found[0], "");
}

// Nodes of a prospective group: their connections, and scalar constants, which move into the group.
TEST(Signature, ProspectiveGroups) {
  const Graph graph = parse_graph(R"(graph (x: f32[2, 3]) {
  two = constant f32[] 2
  three = constant f32[] 3
  row = constant f32[3] [1, 2, 3]
  other = constant f32[3] [4, 5, 6]
  a = mul(x, two)
  b = add(a, row)
  c = mul(b, two)
  d = add(c, other)
  e = mul(d, three)
  f = add(e, row)
  g = mul(f, two)
  h = add(f, row)
  return g, h
})",
                                  all_ops());
  const auto of = [&](const char* first, const char* second) {
    const std::vector<NodeId> nodes = {graph.value(graph.find(first)).producer,
                                       graph.value(graph.find(second)).producer};
    return signature_of(graph, nodes);
  };
  EXPECT_EQ(of("a", "b"), of("c", "d"));
  EXPECT_NE(of("a", "b"), of("e", "f"));
  EXPECT_NE(of("a", "b"), of("g", "h"));
}

}  // namespace
}  // namespace tenon::signature_test
