#include "base/error.h"
#include "nests/generalise.h"
#include "nests/nest_builder.h"

#include <gtest/gtest.h>

#include <set>

namespace tenon::nests::generalise_test {
namespace {

// Columns [begin, begin + count) of a matrix.
LoopNest columns(std::int64_t begin, std::int64_t count, std::int64_t width = 50) {
  const Expr x = operand_expr(0, {DType::F32, {4, width}, {}});
  const Space space({4, count});
  return build_nests("part", {x.at({space[0], space[1] + static_cast<double>(begin)})})
      .parts.at(0)
      .nest;
}

std::string general_text(const LoopNest& nest) {
  const auto general = generalised(nest);
  return general ? to_string(general->nest) : "";
}

TEST(Generalise, MergesNestsThatDifferInNumbers) {
  const std::string text = general_text(columns(3, 5));
  EXPECT_NE(text, "");
  EXPECT_EQ(general_text(columns(7, 2)), text);
  EXPECT_EQ(general_text(columns(7, 2, 90)), text);
  // Another function, a missing loop, a missing summand.
  EXPECT_NE(general_text(columns(7, 1)), text);
  EXPECT_NE(general_text(columns(0, 5)), text);
}

TEST(Generalise, ReturnsTheNumbers) {
  const auto general = generalised(columns(3, 5));
  ASSERT_TRUE(general);
  EXPECT_EQ(general->numbers.size(), general->nest.extents.size());
  const std::multiset<std::int64_t> numbers(general->numbers.begin(), general->numbers.end());
  // The offset, the extents of the operand, the loops, the extents of the result.
  EXPECT_EQ(numbers, (std::multiset<std::int64_t>{3, 4, 50, 4, 5, 4, 5}));
}

// Numbers that affect code generation stay constants.
TEST(Generalise, KeepsTileSizes) {
  LoopNest nest = columns(3, 8);
  nest.body.front().loop = LoopKind::Jam;
  EXPECT_FALSE(generalised(nest));
  nest = columns(3, 8);
  nest.buffers.front().storage = StorageClass::Scratch;
  EXPECT_FALSE(generalised(nest));
}

TEST(Generalise, KeepsCheckedCoordinates) {
  const Expr x = operand_expr(0, {DType::F32, {9}, {}});
  const Space space({9});
  const NestSequence sequence = build_nests("shifted", {x.at_or({space[0] + 2.0}, 0.0)});
  EXPECT_FALSE(generalised(sequence.parts.at(0).nest));
}

}  // namespace
}  // namespace tenon::nests::generalise_test
