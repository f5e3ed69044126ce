#include "models/summary.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

// A symbolic total with hundreds of terms is abbreviated in the table.
TEST(Summary, AbbreviatesLongSymbolicTotals) {
  Dim total = 0;
  for (int k = 0; k < 150; ++k)
    total = models::total_of(total, Dim::symbol("s" + std::to_string(k)));
  EXPECT_EQ(total.range().lo, 0);
  EXPECT_NE(to_string(total), "many");
  for (int k = 150; k < 300; ++k)
    total = models::total_of(total, Dim::symbol("s" + std::to_string(k)));
  EXPECT_EQ(to_string(total), "many");
}

}  // namespace
}  // namespace tenon
