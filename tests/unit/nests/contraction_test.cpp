#include "nests/contraction.h"
#include "nests/integer_contraction.h"
#include "nests/parse.h"

#include <gtest/gtest.h>

namespace tenon::nests::contraction_test {
namespace {

std::string product(const std::string& a, const std::string& b, const std::string& factors) {
  return "kernel k (out y: f32[8, 4], a: " + a + "[8, 6], b: " + b + R"([6, 4]) {
  for i in 0..8 {
    for j in 0..4 {
      t0 = 0.0
      for r in 0..6 carried {
        t0 = sum(t0, ()" +
         factors + R"())
      }
      y[i, j] = t0
    }
  }
}
)";
}

// Loads convert narrow factors implicitly; explicit casts hide the contraction from the matcher.
TEST(Contraction, DropsCastsOfNarrowFactors) {
  LoopNest nest = parse_nest(product("bf16", "f16", "f32(a[i, r]) * f32(b[r, j])"));
  EXPECT_FALSE(find_contraction(nest));
  drop_casts_of_factors(nest);
  EXPECT_NE(to_string(nest).find("sum(t0, (a[i, r] * b[r, j]):f32)"), std::string::npos)
      << to_string(nest);
  EXPECT_TRUE(find_contraction(nest));
}

TEST(Contraction, KeepsOtherCasts) {
  LoopNest nest = parse_nest(product("f32", "i32", "bf16(a[i, r]) * f32(b[r, j])"));
  const std::string before = to_string(nest);
  drop_casts_of_factors(nest);
  EXPECT_EQ(to_string(nest), before);
  EXPECT_FALSE(find_contraction(nest));
}

// The match is the same for floats and bytes; the element types of the factors distinguish them.
TEST(Contraction, MatchesFloatsAndBytes) {
  const LoopNest floats = parse_nest(product("f32", "f32", "a[i, r] * b[r, j]"));
  EXPECT_TRUE(find_general_contraction(floats.body));
  EXPECT_TRUE(find_contraction(floats));
  EXPECT_FALSE(find_integer_contraction(floats.body));
  const LoopNest bytes = parse_nest(R"(kernel k (out y: i32[8, 4], a: u8[8, 6], b: i8[6, 4]) {
  for i in 0..8 {
    for j in 0..4 {
      t0 = 0
      for r in 0..6 carried {
        t0 = sum(t0, (i32(a[i, r]) * i32(b[r, j])))
      }
      y[i, j] = t0
    }
  }
}
)");
  EXPECT_TRUE(find_general_contraction(bytes.body));
  EXPECT_FALSE(find_contraction(bytes));
  const auto sum = find_integer_contraction(bytes.body);
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum->parallel.size(), 2u);
  EXPECT_EQ(sum->a->dtype, DType::U8);
}

}  // namespace
}  // namespace tenon::nests::contraction_test
