#include "expr/access.h"

#include <gtest/gtest.h>

namespace tenon::access_test {
namespace {

TEST(SizeHint, WindowsOfSymbolicLengths) {
  const Dim length = Dim::symbol("L");
  EXPECT_EQ(size_hint(length), 64);
  EXPECT_EQ(size_hint(length - 60), 4);
  // The usual length of 64 is shorter than the window.
  EXPECT_EQ(size_hint(floor_div(length - 512, 160) + 1), 100);
}

TEST(SizeHint, LengthsAreNeverNegative) { EXPECT_EQ(size_hint(Dim::symbol("L", {0, 8}) - 9), 0); }

}  // namespace
}  // namespace tenon::access_test
