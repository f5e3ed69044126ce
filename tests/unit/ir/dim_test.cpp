#include "base/error.h"
#include "ir/dim.h"
#include "ir/dim_broadcast.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace tenon::dim_test {
namespace {

const Dim s = Dim::symbol("s"), t = Dim::symbol("t"), h = Dim::symbol("h");
const Dim N = Dim::symbol("N", {1, 64}), S = Dim::symbol("S", {1, 4096});

TEST(Dim, PrintsCanonically) {
  const std::vector<std::pair<Dim, std::string>> cases = {
      {Dim(-7), "-7"},
      {2 * s + 1, "2*s + 1"},
      {s - 1, "s - 1"},
      {1 - s, "-s + 1"},
      {floor_div(h - 1, 2) + 1, "floor((h - 1)/2) + 1"},
      {floor_div(h + 1, 2), "floor((h - 1)/2) + 1"},
      {floor_div(h, 3), "floor(h/3)"},
      {S * N, "N*S"},
      {s * s * 3, "3*s*s"},
      {max(0, s - 3), "max(0, s - 3)"},
      {max(s, 3), "max(3, s)"},
      {min(s, 10) + t, "t + min(10, s)"},
      {max(0, s - t), "max(0, s - t)"},
      {mod(s, 4), "mod(s, 4)"},
      {mod(s + 1, 4) * 3 + 5, "3*mod(s + 1, 4) + 5"},
      {N * mod(s, 4) + h, "h + N*mod(s, 4)"},
      {mod(s, N), "mod(s, N)"},
      {floor_div(s, N * 2), "floor(s/(2*N))"},
      {Dim::symbol("a b") + 1, "\"a b\" + 1"},
  };
  for (const auto& [dim, text] : cases) EXPECT_EQ(to_string(dim), text);
  EXPECT_EQ(to_string(Dims{N, 3, s + 1}), "[N, 3, s + 1]");
}

// The broadcast of two symbolic axes has an extent symbol of its own if either may be 1.
TEST(Dim, Broadcasts) {
  EXPECT_EQ(broadcast(s, 1), s);
  EXPECT_EQ(broadcast(1, s), s);
  EXPECT_EQ(broadcast(s, s), s);
  EXPECT_EQ(broadcast(s, 4), Dim(4));
  EXPECT_EQ(broadcast(s, 0), Dim(0));
  const Dim two = Dim::symbol("two", {2, 9});
  EXPECT_EQ(broadcast(s, two), two);
  EXPECT_EQ(broadcast(s, 2 * t), 2 * t);
  EXPECT_EQ(to_string(broadcast(t, s)), "broadcast(s, t)");
  EXPECT_EQ(broadcast(broadcast(s, t), h), broadcast(h, broadcast(t, s)));
  EXPECT_EQ(broadcast(broadcast(s, t), t), broadcast(s, t));
  EXPECT_EQ(parse_dim("2*broadcast(s, t, h) + 1"), 2 * broadcast(broadcast(s, t), h) + 1);
  EXPECT_EQ(broadcast(s, t).range().lo, 0);
  EXPECT_EQ(broadcast(N, Dim::symbol("M", {1, 9})).range(), (Range{1, 64}));
  const std::vector<std::array<std::int64_t, 3>> cases = {
      {1, 1, 1}, {1, 5, 5}, {5, 1, 5}, {5, 5, 5}, {0, 1, 0}, {1, 0, 0}, {0, 0, 0}};
  for (const auto& [a, b, both] : cases) {
    EXPECT_EQ(broadcast(s, t).substitute({{"s", a}, {"t", b}}), Dim(both)) << a << ", " << b;
  }
}

// The length of a slice is bounded by its attributes even if both ends are symbolic.
TEST(Dim, SimplifiesNestedExtrema) {
  const Dim from = min(1024, h), to = min(1024, h + s);
  EXPECT_TRUE(provably_at_most(max(to - from, 0), s));
  EXPECT_FALSE(provably_at_most(s, max(to - from, 0)));
}

TEST(Dim, MayRepeat) {
  EXPECT_TRUE(may_repeat(s, broadcast(s, t)));
  EXPECT_TRUE(may_repeat(s, 4));
  EXPECT_FALSE(may_repeat(s, s));
  EXPECT_FALSE(may_repeat(4, s));
  EXPECT_FALSE(may_repeat(Dim::symbol("two", {2, 9}), s));
  EXPECT_FALSE(may_repeat(broadcast(s, t), s));  // equal to its bound
}

TEST(Dim, ProvesEquality) {
  EXPECT_EQ(2 * (s + 1) - 2, 2 * s);
  EXPECT_EQ((s + 1) * (s - 1), s * s - 1);
  EXPECT_EQ(floor_div(2 * s + 3, 2), s + 1);
  EXPECT_EQ(floor_div(floor_div(s, 2), 3), floor_div(s, 6));
  EXPECT_EQ(floor_div(floor_div(s - 1, 2), 2), floor_div(s - 1, 4));
  EXPECT_EQ(floor_div(2 * s + 1, 4), floor_div(s, 2));
  EXPECT_EQ(floor_div(N * S * 64, 64), N * S);
  EXPECT_EQ(floor_div(N * S * 64, S), N * 64);
  EXPECT_EQ(floor_div(N * S * 64, S * 16), N * 4);
  EXPECT_EQ(floor_div(N * S + N, S + 1), N);
  EXPECT_EQ(floor_div(floor_div(s, N), 4), floor_div(floor_div(s, 4), N));
  EXPECT_EQ(floor_div(N - 1, 64), Dim(0));
  EXPECT_EQ(floor_div(S, S + 1), Dim(0));
  EXPECT_EQ(floor_div(s, -2), floor_div(0 - s, 2));
  EXPECT_EQ(ceil_div(s, 4), floor_div(s + 3, 4));
  EXPECT_EQ(ceil_div(s * S, S), s);
  EXPECT_THROW(ceil_div(s, 0), Error);
  EXPECT_EQ(mod(s, 4), s - 4 * floor_div(s, 4));
  EXPECT_EQ(mod(4 * s + 5, 4), Dim(1));
  EXPECT_EQ(max(s + 1, t + 1), max(t, s) + 1);
  EXPECT_EQ(max(2 * s, 2 * t), 2 * max(s, t));
  EXPECT_EQ(max(max(s, t), h), max(s, max(h, t)));
  EXPECT_EQ(max(0, s), s);
  EXPECT_EQ(max(s, s + 1), s + 1);
  EXPECT_EQ(min(s, kMaxExtent), s);
  EXPECT_EQ(min(s * t, INT64_MAX), s * t);
  EXPECT_EQ(max(0, s + INT64_MIN), Dim(0));
  // S may be zero, and then S/S is not one.
  EXPECT_NE(floor_div(s, s), Dim(1));
}

TEST(Dim, Ranges) {
  const Dim x = Dim::symbol("x", {0, 10});
  EXPECT_EQ((2 * x - 3).range(), (Range{-3, 17}));
  EXPECT_EQ(mod(s, 4).range(), (Range{0, 3}));
  EXPECT_EQ(floor_div(5 - x, 4).range(), (Range{-2, 1}));
  EXPECT_EQ((x - floor_div(x, 2)).range(), (Range{0, 5}));
  EXPECT_EQ(mod(s, N).range(), (Range{0, 63}));
  EXPECT_EQ(max(0, x - 3).range(), (Range{0, 7}));
  EXPECT_EQ((x * x).range(), (Range{0, 100}));
  EXPECT_EQ((s * t).range(), (Range{0, INT64_MAX}));
  EXPECT_TRUE(provably_at_most(floor_div(s, 2), s));
  EXPECT_FALSE(provably_at_most(s, t));
  EXPECT_TRUE(provably_different(s, s + 1));
  EXPECT_TRUE(provably_different(2 * s, 2 * t + 1));
  EXPECT_TRUE(provably_different(N, 0));
  EXPECT_FALSE(provably_different(s, 5));
}

TEST(Dim, RefusesInvalidOperands) {
  EXPECT_THROW(Dim(kMaxExtent) * 2, Error);
  EXPECT_THROW(Dim(INT64_MAX) + 1, Error);
  EXPECT_EQ(Dim(INT64_MIN) + 5, Dim(INT64_MIN + 5));  // the "from the start" of a slice survives
  EXPECT_THROW(floor_div(s, 0), Error);
  EXPECT_THROW(floor_div(Dim(4), 0), Error);
  EXPECT_THROW(mod(Dim(4), 0), Error);
  EXPECT_THROW(floor_div(4, s).substitute({{"s", 0}}), Error);
  EXPECT_THROW(Dim::symbol("e", {2, 1}), Error);
  EXPECT_EQ(product({Dim(0), Dim(kMaxExtent), Dim(kMaxExtent)}), Dim(0));
}

TEST(Dim, LimitsExpressionSize) {
  const auto grow = [](auto step) {
    Dim dim = s;
    for (int i = 0; i < 1000; ++i) dim = step(dim, Dim::symbol("x" + std::to_string(i)));
  };
  EXPECT_THROW(grow([](const Dim& d, const Dim& x) { return d * (x + 1); }), Error);
  EXPECT_THROW(grow([](const Dim& d, const Dim&) { return d * s; }), Error);
  EXPECT_THROW(grow([](const Dim& d, const Dim& x) { return floor_div(d + x, d); }), Error);
  EXPECT_THROW(grow([](const Dim& d, const Dim& x) { return max(min(d, x), d * 2 - x); }), Error);
}

TEST(Dim, SubstitutesAndCollects) {
  const Dim dim = floor_div(h + 2 * s - 3, 2) * N + max(s, t);
  EXPECT_EQ(dim.substitute({{"s", 4}, {"h", 9}, {"N", 2}, {"t", 1}}), Dim(18));
  EXPECT_EQ(dim.substitute({{"h", 3 - 2 * s}, {"t", s}}), s);
  EXPECT_EQ(dim.substitute({{"unknown", 4}}), dim);
  SymbolRanges symbols;
  dim.collect_symbols(symbols);
  EXPECT_EQ(symbols.size(), 4u);
  EXPECT_EQ(symbols["N"], (Range{1, 64}));
  EXPECT_EQ(s.symbol_name(), "s");
  EXPECT_EQ((s + 1).symbol_name(), std::nullopt);
}

TEST(Dim, RefusesBadText) {
  for (const char* text : {"", "s +", "2 s", "floor(s)", "floor(h - 1/2)", "mod(s)", "foo(s)", "(s",
                           "99999999999999999999", "\"s", "s/2", "min()", "max(1,)", "1.5"}) {
    EXPECT_THROW(parse_dim(text), Error) << text;
  }
  EXPECT_THROW(parse_dim(std::string(100000, '(')), Error);
  EXPECT_THROW(parse_dim(std::string(100000, '-') + "s"), Error);
  EXPECT_EQ(parse_dim(" - 9223372036854775808 "), Dim(INT64_MIN));
  EXPECT_EQ(parse_dim("2*-s + -3"), -2 * s - 3);
  try {
    parse_dim("s + $");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("column 5"), std::string::npos) << error.what();
  }
}

/// A random expression with its directly computed value; operands that violate preconditions (zero
/// divisors) are avoided.
struct Sample {
  Dim dim;
  std::int64_t value = 0;
};

class RandomDims : public ::testing::TestWithParam<unsigned> {
 protected:
  std::int64_t pick(std::int64_t lo, std::int64_t hi) {
    return std::uniform_int_distribution<std::int64_t>(lo, hi)(random_);
  }

  Sample leaf() {
    const std::int64_t choice = pick(0, 5);
    if (choice == 5) {
      const std::int64_t number = pick(-6, 12);
      return {number, number};
    }
    const std::string name(1, static_cast<char>('a' + choice));
    return {Dim::symbol(name, ranges_.at(name)), values_.at(name).constant()};
  }

  static std::int64_t floored(std::int64_t a, std::int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
  }

  Sample expression(int depth) {
    if (depth == 0 || pick(0, 9) == 0) return leaf();
    const Sample x = expression(depth - 1);
    const Sample y = expression(pick(0, 2) == 0 ? depth - 1 : 0);
    const std::int64_t number = pick(1, 8);
    switch (pick(0, 10)) {
      case 0:
      case 1:
        return {x.dim + y.dim, x.value + y.value};
      case 2:
        return {x.dim - y.dim, x.value - y.value};
      case 3:
        return {x.dim * number, x.value * number};
      case 4:
        return {min(x.dim, y.dim), std::min(x.value, y.value)};
      case 5:
        return {max(x.dim, y.dim), std::max(x.value, y.value)};
      case 6:
        return {floor_div(x.dim, number), floored(x.value, number)};
      case 7:
        return {mod(x.dim, number), x.value - number * floored(x.value, number)};
      case 8:
        return {ceil_div(x.dim, number), -floored(-x.value, number)};
      case 9:
        if (depth > 2) return x;
        return {x.dim * y.dim, x.value * y.value};
      default:
        break;
    }
    if (y.value == 0 || (y.dim.is_constant() && y.dim.constant() == 0)) return x;
    if (pick(0, 1) == 0) return {floor_div(x.dim, y.dim), floored(x.value, y.value)};
    return {mod(x.dim, y.dim), x.value - y.value * floored(x.value, y.value)};
  }

  void SetUp() override {
    random_.seed(GetParam());
    const SymbolRanges kinds = {
        {"a", {0, 9}}, {"b", {1, 12}}, {"c", {-5, 6}}, {"d", {0, kMaxExtent}}, {"e", {2, 30}}};
    for (const auto& [name, range] : kinds) {
      ranges_[name] = range;
      values_[name] = pick(range.lo, std::min<std::int64_t>(range.hi, 20));
    }
  }

  std::mt19937 random_;
  SymbolRanges ranges_;
  DimBindings values_;
};

TEST_P(RandomDims, MatchDirectEvaluation) {
  for (int i = 0; i < 300; ++i) {
    const Sample sample = expression(4);
    const std::string text = to_string(sample.dim);
    ASSERT_EQ(sample.dim.substitute(values_), Dim(sample.value)) << text;
    const Range range = sample.dim.range();
    ASSERT_LE(range.lo, sample.value) << text;
    ASSERT_GE(range.hi, sample.value) << text;
    ASSERT_EQ(to_string(parse_dim(text, ranges_)), text);
    ASSERT_EQ(parse_dim(text, ranges_), sample.dim) << text;
    ASSERT_EQ(sample.dim - sample.dim, Dim(0)) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomDims, ::testing::Range(0u, 40u));

}  // namespace
}  // namespace tenon::dim_test
