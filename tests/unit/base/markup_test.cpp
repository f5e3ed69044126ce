#include "base/markup.h"

#include <gtest/gtest.h>

namespace tenon::markup_test {
namespace {

TEST(Markup, EscapesText) {
  EXPECT_EQ(in_markup("<script a='b' c=\"d\">&"),
            "&lt;script a=&#39;b&#39; c=&quot;d&quot;&gt;&amp;");
}

TEST(Markup, ReplacesControlCharactersBySpaces) {
  EXPECT_EQ(in_markup(std::string_view("a\x01\x1f\0b\n\tä", 9)), "a   b\n\tä");
}

}  // namespace
}  // namespace tenon::markup_test
