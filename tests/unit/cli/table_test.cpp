#include "base/text.h"
#include "cli/table.h"

#include <gtest/gtest.h>

#include <sstream>

namespace tenon::cli::table_test {
namespace {

std::string printed(const Table& table, std::size_t columns) {
  std::ostringstream out;
  table.print(out, columns);
  return out.str();
}

Table words() {
  Table table({"op", ">nodes", "what it computes"});
  table.add({"softmax(x) -> y", "12", "exp(x), scaled to sum to one along an axis"});
  table.add({"relu(x) -> y", "3", "max(x, 0)"});
  return table;
}

TEST(Table, OneLinePerRowWithoutALimit) {
  EXPECT_EQ(printed(words(), 0),
            "op               nodes  what it computes\n"
            "---------------  -----  ------------------------------------------\n"
            "softmax(x) -> y     12  exp(x), scaled to sum to one along an axis\n"
            "relu(x) -> y         3  max(x, 0)\n");
  EXPECT_EQ(printed(words(), 200), printed(words(), 0));
}

// The widest column wraps; numbers are not broken.
TEST(Table, WrapsCellsToFit) {
  EXPECT_EQ(printed(words(), 44),
            "op               nodes  what it computes\n"
            "---------------  -----  --------------------\n"
            "softmax(x) -> y     12  exp(x), scaled to\n"
            "                        sum to one along an\n"
            "                        axis\n"
            "relu(x) -> y         3  max(x, 0)\n");
}

TEST(Table, BreaksLongWords) {
  Table table({"name"});
  table.add({"äöüäöüäöüäöüäöü x"});
  EXPECT_EQ(printed(table, 12), "name\n------------\näöüäöüäöüäöü\näöü x\n");
}

// Numbers are never broken: the last columns are dropped and named if they do not fit.
TEST(Table, DropsLastColumnsThatDoNotFit) {
  Table table({"name", ">us", ">p10", ">p90", "shapes"});
  table.add({"conv+relu layer1.0.conv1", "2318.5", "2200.1", "2403.9", "f32[1, 64, 56, 56]"});
  EXPECT_EQ(printed(table, 40),
            "name                  us     p10     p90\n"
            "----------------  ------  ------  ------\n"
            "conv+relu         2318.5  2200.1  2403.9\n"
            "layer1.0.conv1\n"
            "left out, for the terminal is too\n"
            "narrow: shapes\n");
  for (std::size_t columns = 20; columns < 100; ++columns) {
    for (const std::string& line : split(printed(table, columns), '\n'))
      EXPECT_LE(line.size(), columns);
  }
}

TEST(Table, FitsEveryWidth) {
  for (std::size_t columns = 45; columns < 90; ++columns) {
    for (const std::string& line : split(printed(words(), columns), '\n'))
      EXPECT_LE(line.size(), columns);
  }
}

}  // namespace
}  // namespace tenon::cli::table_test
