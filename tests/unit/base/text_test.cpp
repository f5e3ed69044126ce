#include "base/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace tenon::text_test {
namespace {

const std::vector<std::string> kNames = {"softmax", "matmul", "conv", "add"};

TEST(Text, SuggestsNames) {
  EXPECT_EQ(nearest_name("sofmax", kNames), "softmax");
  EXPECT_EQ(nearest_name("MatMul", kNames), "matmul");
  EXPECT_EQ(nearest_name("zzz", kNames), std::nullopt);
  EXPECT_EQ(nearest_name("x", kNames), std::nullopt);
  EXPECT_EQ(suggest_name("covn", {kNames.data(), 3}), "did you mean 'conv'?");
  EXPECT_EQ(suggest_name("pool", {kNames.data(), 3}), "one of softmax, matmul, conv");
  EXPECT_EQ(suggest_name("conv2", kNames), "did you mean 'conv'?");
  const std::vector<std::string> many(20, "longname");
  EXPECT_TRUE(suggest_name("q", many).ends_with("… (12 more)"));
}

TEST(Text, SplitsJoinsTrims) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), std::vector<std::string>{""});
  EXPECT_EQ(join(split("a,b,c", ','), "; "), "a; b; c");
  EXPECT_EQ(trim(" \t a b\n"), "a b");
  EXPECT_EQ(trim("  "), "");
}

TEST(Text, FormatsQuantities) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(1024 * 1024 - 1), "1 MiB");
  EXPECT_EQ(format_bytes(98 * 1024 * 1024 + 300 * 1024), "98.3 MiB");
  EXPECT_EQ(format_bytes(~std::uint64_t{0}), "16 EiB");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1234567), "1.23 M");
  EXPECT_EQ(format_count(999999), "1 M");
  EXPECT_EQ(format_count(-4.1e9), "-4.1 G");
}

TEST(Text, FormatsReals) {
  EXPECT_EQ(format_real(1.0), "1.0");
  EXPECT_EQ(format_real(0.1f), "0.1");
  EXPECT_EQ(format_real(-0.0), "-0.0");
  EXPECT_EQ(format_real(1e300), "1e+300");
  EXPECT_EQ(format_real(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(format_real(-std::nan("")), "nan");
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const double value =
        std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 900) - 450);
    EXPECT_EQ(parse_real(format_real(value)), value);
  }
}

TEST(Text, ParsesWholeNumbersOnly) {
  EXPECT_EQ(parse_integer("-12"), -12);
  EXPECT_EQ(parse_integer("+7"), 7);
  EXPECT_EQ(parse_integer("-9223372036854775808"), INT64_MIN);
  for (const char* text : {"", "+", "+-1", "12x", " 1", "9223372036854775808", "1.0"}) {
    EXPECT_EQ(parse_integer(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_real("1e-5"), 1e-5);
  EXPECT_EQ(parse_real("+inf"), std::numeric_limits<double>::infinity());
  for (const char* text : {"", "1e", "1,5", "0x", "1e999"})
    EXPECT_EQ(parse_real(text), std::nullopt) << text;
}

TEST(Text, QuotesAndUnquotes) {
  EXPECT_EQ(quote("a\"b\\c\n\t\x01é"), "\"a\\\"b\\\\c\\n\\t\\x01é\"");
  EXPECT_EQ(quote("\xff\xc3"), "\"\\xff\\xc3\"");
  std::mt19937 random(2);
  for (int i = 0; i < 500; ++i) {
    std::string text(random() % 12, ' ');
    for (char& c : text) c = static_cast<char>(random());
    EXPECT_EQ(unquote(quote(text)), text);
  }
  for (const char* text : {"", "\"", "a", "\"a", "\"a\"b\"", "\"\\q\"", "\"\\x1\"", "\"\\\""}) {
    EXPECT_EQ(unquote(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tenon::text_test
