#include "nests/parse.h"
#include "nests/simplify_indices.h"

#include <gtest/gtest.h>

namespace tenon::nests {
namespace {

std::string simplified(const std::string& text) {
  LoopNest nest = parse_nest(text);
  simplify_indices(nest);
  return to_string(nest);
}

// Merged axes of a reshape: quotients and remainders by the inner extent.
TEST(SimplifyIndices, SplitsQuotientsOfSums) {
  const std::string given = R"(kernel k (x: f32[N, 4, 8], out y: f32[N, 32]) given [N] {
  for i in 0..dim(N) {
    for j in 0..32 {
      y[i, j] = x[(((i * 32) + j) // 32), ((((i * 32) + j) // 8) % 4), (((i * 32) + j) % 8)]
    }
  }
}
)";
  const std::string found = simplified(given);
  EXPECT_NE(found.find("= x[i, "), std::string::npos) << found;
  EXPECT_EQ(found.find("i * 32"), std::string::npos) << found;
}

// Indices that wrap around below zero, with constants.
TEST(SimplifyIndices, FoldsConditionsOfConstants) {
  const std::string found = simplified(R"(kernel k (x: f32[3, 8], out y: f32[8]) {
  for j in 0..8 {
    y[j] = x[((2 < 0) ? 5 : 2), j]
  }
}
)");
  EXPECT_NE(found.find("x[2, j]"), std::string::npos) << found;
}

}  // namespace
}  // namespace tenon::nests
