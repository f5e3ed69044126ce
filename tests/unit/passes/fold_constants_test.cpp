#include "ir/graph.h"
#include "passes/definition/pass.h"
#include "tenon/builder.h"

#include <gtest/gtest.h>

namespace tenon::fold_constants_test {
namespace {

// A transpose of a constant that exceeds the size limit of folding.
Graph transposed_weight(const Constant& weight, bool is_read_twice) {
  Builder b;
  const Var w = b.constant(weight, "w");
  b.output(b.call("transpose", {w}, {{"perm", Attr::Integers{1, 0}}}), "t");
  if (is_read_twice) b.output(b.call("relu", {w}), "r");
  return b.take();
}

Graph folded(Graph graph) { return passes::find_pass("fold-constants").run(std::move(graph), {}); }

TEST(FoldConstants, FoldsTransposesOfLargeWeights) {
  const Tensor stored(DType::F32, {600, 700});
  const Graph after = folded(transposed_weight(stored, false));
  EXPECT_EQ(after.node_count(), 1u);
  EXPECT_NE(after.constant_of(after.outputs().front()), nullptr);
}

TEST(FoldConstants, KeepsSharedWeights) {
  const Graph after = folded(transposed_weight(Tensor(DType::F32, {600, 700}), true));
  EXPECT_EQ(after.constant_of(after.outputs().front()), nullptr);
}

// One weight for each of two directions, the first two rows of `rows` in all.
Graph parts_of_weight(std::int64_t rows, bool is_read_whole) {
  Builder b;
  const Var w = b.constant(Tensor(DType::F32, {rows, 600, 700}), "w");
  for (const std::int64_t row : {0, 1}) {
    const Var part =
        b.call("slice", {w}, {{"starts", Attr::Integers{row}}, {"ends", Attr::Integers{row + 1}}});
    b.output(b.call("transpose", {part}, {{"perm", Attr::Integers{0, 2, 1}}}),
             row == 0 ? "first" : "second");
  }
  if (is_read_whole) b.output(b.call("relu", {w}), "whole");
  return b.take();
}

TEST(FoldConstants, SlicesReplaceALargeWeight) {
  for (const std::int64_t rows : {2, 3}) {
    const Graph after = folded(parts_of_weight(rows, false));
    EXPECT_EQ(after.node_count(), 2u) << rows;
    for (const ValueId output : after.outputs())
      EXPECT_NE(after.constant_of(output), nullptr) << rows;
  }
}

TEST(FoldConstants, KeepsSlicesOfSharedWeights) {
  const Graph after = folded(parts_of_weight(2, true));
  EXPECT_EQ(after.constant_of(after.outputs().front()), nullptr);
}

TEST(FoldConstants, KeepsSeededWeights) {
  const Graph after =
      folded(transposed_weight(Constant::normal(DType::F32, {600, 700}, 1, 0, 1), false));
  EXPECT_EQ(after.constant_of(after.outputs().front()), nullptr);
}

}  // namespace
}  // namespace tenon::fold_constants_test
