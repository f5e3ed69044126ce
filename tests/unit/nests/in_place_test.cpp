#include "ir/text.h"
#include "nests/in_place.h"
#include "nests/nest_builder.h"
#include "nests/node_exprs.h"
#include "ops/registry.h"

#include <gtest/gtest.h>

#include <map>

namespace tenon::nests {
namespace {

// Of the last nest of a graph's only node: whether its result may lie where its operands do, by
// operand.
std::vector<bool> overwritable(const std::string& text) {
  const Graph graph = parse_graph(text, all_ops());
  const NestSequence sequence =
      build_nests("y", node_exprs(graph, *graph.nodes_in_order().begin()));
  const NestSequence::Part& part = sequence.parts.back();
  std::map<std::size_t, bool> by_operand;
  std::size_t result = 0;
  for (std::size_t k = 0; k < part.nest.buffers.size(); ++k) {
    if (part.nest.buffers[k].storage == Storage::Result) result = k;
  }
  std::size_t given = 0;
  for (std::size_t k = 0; k < part.nest.buffers.size(); ++k) {
    if (part.nest.buffers[k].storage == Storage::Scratch) continue;
    const NestSequence::Buffer& buffer = sequence.buffers[part.buffers[given++]];
    if (buffer.role != NestSequence::Role::Operand) continue;
    by_operand[buffer.index] = may_overwrite(part.nest, result, k);
  }
  std::vector<bool> found;
  for (const auto& [operand, may] : by_operand) found.push_back(may);
  return found;
}

using Found = std::vector<bool>;

TEST(InPlace, AnElementIsReadWhereItIsWritten) {
  EXPECT_EQ(overwritable("graph (x: f32[4, 5]) {\n  y = exp(x)\n  return y\n}\n"), (Found{true}));
  EXPECT_EQ(overwritable("graph (x: f32[4, 5], z: f32[4, 5]) {\n  y = add(x, z)\n  return y\n}\n"),
            (Found{true, true}));
  EXPECT_EQ(overwritable("graph (x: f32[n, 5]) {\n  y = neg(x)\n  return y\n}\n"), (Found{true}));
}

TEST(InPlace, ARowIsReadByAllOfItsPositions) {
  EXPECT_EQ(overwritable("graph (x: f32[4, 5], b: f32[5]) {\n  y = add(x, b)\n  return y\n}\n"),
            (Found{true, false}));
  EXPECT_EQ(overwritable("graph (x: f32[4, 5]) {\n  y = softmax(x)\n  return y\n}\n"),
            (Found{false}));
}

TEST(InPlace, WhatMovesIsReadElsewhere) {
  EXPECT_EQ(overwritable("graph (x: f32[5, 5]) {\n  y = transpose(x)\n  return y\n}\n"),
            (Found{false}));
}

TEST(InPlace, AResidualIsReadBehindTheSum) {
  EXPECT_EQ(overwritable(R"(graph (x: f32[6, 6], w: f32[6, 6], r: f32[6, 6]) {
  y = fused(x, w, r) group = graph (x: f32[6, 6], w: f32[6, 6], r: f32[6, 6]) {
    m = matmul(x, w)
    y = add(m, r)
    return y
  }
  return y
}
)"),
            (Found{false, false, true}));
}

}  // namespace
}  // namespace tenon::nests
