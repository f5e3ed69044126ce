#include "base/error.h"
#include "base/pattern.h"

#include <gtest/gtest.h>

namespace tenon::pattern_test {
namespace {

bool matches(std::string_view pattern, std::string_view text) {
  return Pattern(pattern).matches(text);
}

TEST(Pattern, MatchesWholeTexts) {
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_FALSE(matches("a", "ab"));
  EXPECT_TRUE(matches("a|b|cd", "cd"));
  EXPECT_FALSE(matches("a|b|cd", "c"));
}

TEST(Pattern, RefusesMalformedAndHugePatterns) {
  for (const char* text : {"(", "[a", "*a", "a\xFF", "((x{1000}){1000}){1000}"})
    EXPECT_THROW(Pattern{text}, Error) << text;
  EXPECT_THROW(Pattern{std::string(10'000, '(')}, Error);
}

}  // namespace
}  // namespace tenon::pattern_test
