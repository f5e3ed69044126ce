#include "strict.h"

#include <gtest/gtest.h>

int main(int argc, char** argv) {
  tenon::testing::be_strict();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
