#include "base/error.h"
#include "base/pattern.h"

#include <gtest/gtest.h>

namespace tenon::pattern_test {
namespace {

bool matches(std::string_view pattern, std::string_view text) {
  return Pattern(pattern).matches(text);
}

TEST(Pattern, MatchesWholeTextsOnly) {
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_FALSE(matches("a", "ab"));
  EXPECT_TRUE(matches("a|b|cd", "cd"));
  EXPECT_FALSE(matches("a|b|cd", "c"));
  EXPECT_TRUE(matches("(a|b)*", "abba"));
}

TEST(Pattern, CountsRepetitions) {
  EXPECT_FALSE(matches("x{2,3}", "x"));
  EXPECT_TRUE(matches("x{2,3}?", "xxx"));
  EXPECT_FALSE(matches("x{2,3}", "xxxx"));
  EXPECT_TRUE(matches("x{2,}", "xxxxx"));
  EXPECT_TRUE(matches("a{,2}", "a{,2}"));
  EXPECT_TRUE(matches("(a*)*", "aaa"));
}

TEST(Pattern, KnowsClassesAndEscapes) {
  EXPECT_TRUE(matches("[]a-c]+", "a]c"));
  EXPECT_TRUE(matches("[^a-c]+", "dé☃"));
  EXPECT_FALSE(matches("[^a-c]+", "da"));
  EXPECT_TRUE(matches(R"([[:alpha:]_\d]+)", "ab_1"));
  EXPECT_TRUE(matches(R"(\x41\x{263a}\.)", "A☺."));
  EXPECT_TRUE(matches(R"(\Qa.b\E+)", "a.bb"));
  EXPECT_FALSE(matches(R"(\Qa.b\E)", "axb"));
}

TEST(Pattern, KnowsFlagsAndPlaces) {
  EXPECT_TRUE(matches("(?i)AbC", "aBc"));
  EXPECT_TRUE(matches("(?i:a)B", "AB"));
  EXPECT_FALSE(matches("(?i:a)B", "Ab"));
  EXPECT_FALSE(matches("a.b", "a\nb"));
  EXPECT_TRUE(matches("(?s)a.b", "a\nb"));
  EXPECT_TRUE(matches("(?m)a$\\n^b", "a\nb"));
  EXPECT_FALSE(matches("a$\\nb", "a\nb"));
  EXPECT_TRUE(matches(R"(^a\b \Bb?)", "a "));
}

TEST(Pattern, TakesTimeInProportion) {
  const std::string text(100'000, 'a');
  EXPECT_FALSE(matches("(a*)*b", text));
  EXPECT_TRUE(matches("(a|aa)+", text));
}

TEST(Pattern, KnowsUnicode) {
  EXPECT_TRUE(matches(R"(\p{L}+)", "aé"));
  EXPECT_TRUE(matches("(?i)É", "é"));
}

TEST(Pattern, RefusesWhatIsNone) {
  for (const char* text : {"(", ")", "[a", "*a", "a{3,2}", "\\", "[b-a]", "[[:none:]]", "a\xFF",
                           "((x{1000}){1000}){1000}", "x{1001}", "(?=a)"}) {
    EXPECT_THROW(Pattern{text}, Error) << text;
  }
  EXPECT_THROW(Pattern{std::string(10'000, '(')}, Error);
}

}  // namespace
}  // namespace tenon::pattern_test
