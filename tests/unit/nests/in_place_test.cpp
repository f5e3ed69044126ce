#include "base/error.h"
#include "ir/text.h"
#include "nests/in_place.h"
#include "nests/nest_builder.h"
#include "nests/node_exprs.h"
#include "nests/parse.h"
#include "ops/definition/registry.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>

namespace tenon::nests::in_place_test {
namespace {

// Returns for each operand of a graph's only node whether a result (by default the last) of its
// last nest may overwrite it.
std::vector<bool> overwritable(const std::string& text, std::optional<std::size_t> of = {}) {
  const Graph graph = parse_graph(text, all_ops());
  const NestSequence sequence =
      build_nests("y", node_exprs(graph, *graph.nodes_in_order().begin()));
  const NestSequence::NestCall& part = sequence.parts.back();
  std::map<std::size_t, bool> by_operand;
  std::size_t result = 0;
  for (std::size_t k = 0; k < part.nest.buffers.size(); ++k) {
    if (part.nest.buffers[k].storage != StorageClass::Result) continue;
    if (!of || part.nest.buffers[k].name == "y" + std::to_string(*of)) result = k;
  }
  std::size_t given = 0;
  for (std::size_t k = 0; k < part.nest.buffers.size(); ++k) {
    if (part.nest.buffers[k].storage == StorageClass::Scratch) continue;
    const NestSequence::Buffer& buffer = sequence.buffers[part.buffers[given++]];
    if (buffer.role != NestSequence::BufferRole::Operand) continue;
    by_operand[buffer.index] = may_overwrite(part.nest, result, k);
  }
  std::vector<bool> found;
  for (const auto& [operand, may] : by_operand) found.push_back(may);
  return found;
}

using Found = std::vector<bool>;

TEST(InPlace, ElementwiseOverwritesOperands) {
  EXPECT_EQ(overwritable("graph (x: f32[4, 5]) {\n  y = exp(x)\n  return y\n}\n"), (Found{true}));
  EXPECT_EQ(overwritable("graph (x: f32[4, 5], z: f32[4, 5]) {\n  y = add(x, z)\n  return y\n}\n"),
            (Found{true, true}));
  EXPECT_EQ(overwritable("graph (x: f32[n, 5]) {\n  y = neg(x)\n  return y\n}\n"), (Found{true}));
}

TEST(InPlace, RowReductionsDoNot) {
  EXPECT_EQ(overwritable("graph (x: f32[4, 5], b: f32[5]) {\n  y = add(x, b)\n  return y\n}\n"),
            (Found{true, false}));
  EXPECT_EQ(overwritable("graph (x: f32[4, 5]) {\n  y = softmax(x)\n  return y\n}\n"),
            (Found{false}));
}

TEST(InPlace, DataMovementDoesNot) {
  EXPECT_EQ(overwritable("graph (x: f32[5, 5]) {\n  y = transpose(x)\n  return y\n}\n"),
            (Found{false}));
}

TEST(InPlace, GemmsOverwriteTheResidual) {
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

// Returns the permitted pairs for a nest with the results y and z and the operands x and v.
std::string allowed(const std::string& body) {
  const LoopNest nest = parse_nest(
      concat("kernel k (out y: f32[8, 8], out z: f32[8, 8], x: f32[8, 8], v: f32[8, 8]) {\n", body,
             "}\n"));
  std::string text;
  for (const std::size_t result : {0U, 1U}) {
    for (const std::size_t operand : {2U, 3U}) {
      if (may_overwrite(nest, result, operand))
        text += concat(nest.buffers[result].name, nest.buffers[operand].name, " ");
    }
  }
  return text;
}

// A store may not destroy operands of later results; operands whose reads precede the store may be
// overwritten.
TEST(InPlace, SeveralResults) {
  EXPECT_EQ(allowed(R"(for i in 0..8 parallel {
  for j in 0..8 vector by 8 {
    y[i, j] = (x[i, j] * 2.0)
    z[i, j] = (y[i, j] + v[i, j])
  }
}
)"),
            "yx zx zv ");
  EXPECT_EQ(allowed(R"(for i in 0..8 parallel {
  for j in 0..8 vector by 8 {
    y[i, j] = (v[i, j] * 2.0)
    z[i, j] = (x[i, j] + v[i, j])
  }
}
)"),
            "zx zv ");
}

// The stores of a register tile to different groups must not overlap.
TEST(InPlace, StoresOfATileAreDisjoint) {
  const auto tile = [](const char* second) {
    return allowed(concat("for t in 0..4 parallel {\n  for j in 0..8 vector by 8 {\n",
                          "    y[((t * 2) + 0), j] = x[((t * 2) + 0), j]\n    y[", second,
                          ", j] = x[", second, ", j]\n  }\n}\n"));
  };
  EXPECT_EQ(tile("((t * 2) + 1)"), "yx ");
  EXPECT_EQ(tile("(((t * 2) + 1) + 2)"), "yx ");
  EXPECT_EQ(tile("((t * 2) + 2)"), "");  // the next tile's first
  EXPECT_EQ(tile("(t + 1)"), "");
}

// A neighbour that another iteration writes; an element that every iteration writes.
TEST(InPlace, RefusesReadsOfOtherIterations) {
  EXPECT_EQ(allowed("for i in 0..7 { for j in 0..8 { y[i, j] = (x[i, j] + x[(i + 1), j]) } }\n"),
            "");
  EXPECT_EQ(allowed("for r in 0..3 { for i in 0..8 { for j in 0..8 { y[i, j] = x[i, j] } } }\n"),
            "");
  EXPECT_EQ(allowed("for i in 0..8 { for j in 0..8 { y[i, j] = 0.0 } }\n"
                    "for i in 0..8 { for j in 0..8 { y[i, j] = x[i, j] } }\n"),
            "");
}

// Adam: the parameter and both moments are updated in place.
constexpr const char* kAdam =
    R"(graph (g: f32[6, 6], m: f32[6, 6], v: f32[6, 6], w: f32[6, 6]) {
  m2, v2, w2 = fused(g, m, v, w) group = graph (g: f32[6, 6], m: f32[6, 6], v: f32[6, 6], w: f32[6, 6]) {
    m2 = add(m, g)
    gg = mul(g, g)
    v2 = add(v, gg)
    s = sqrt(v2)
    d = div(m2, s)
    w2 = sub(w, d)
    return m2, v2, w2
  }
  return m2, v2, w2
}
)";

TEST(InPlace, OptimizerUpdates) {
  EXPECT_EQ(overwritable(kAdam, 0), (Found{false, true, false, false}));
  EXPECT_EQ(overwritable(kAdam, 1), (Found{true, true, true, false}));
  EXPECT_EQ(overwritable(kAdam, 2), (Found{true, true, true, true}));
}

TEST(InPlace, RefusesReadsAfterTheStore) {
  constexpr const char* text = R"(graph (x: f32[6, 6], z: f32[6, 6]) {
  a, b = fused(x, z) group = graph (x: f32[6, 6], z: f32[6, 6]) {
    a = exp(x)
    b = mul(x, z)
    return a, b
  }
  return a, b
}
)";
  EXPECT_EQ(overwritable(text, 0), (Found{false, false}));
  EXPECT_EQ(overwritable(text, 1), (Found{true, true}));
}

}  // namespace
}  // namespace tenon::nests::in_place_test
