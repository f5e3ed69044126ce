// Trimming of loops over window rows that lie in zero padding.
#include "nests/parse.h"
#include "nests/schedule/trim_padding_loops.h"
#include "nests/verify.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tenon::nests::trim_padding_loops_test {
namespace {

// A window of three rows, four apart, over five rows with four zeros on either side.
const std::string kConvolution =
    R"(kernel k (out y: f32[5, 6, 8], w: f32[3, 2, 7, 8], p: f32[13, 7, 7]) {
  for i in 0..5 parallel {
    for o in 0..8 vector by 8 {
      for j in 0..6 jam by 6 {
        t0 = 0.0
        for r in 0..3 carried {
          for s in 0..2 carried {
            for c in 0..7 carried {
              t0 = sum(t0, (p[(i + (r * 4)), (j + s), c] * w[r, s, c, o]))
            }
          }
        }
        y[i, j, o] = t0
      }
    }
  }
}
)";

std::string with(const std::string& what, const std::string& instead) {
  std::string text = kConvolution;
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), instead);
}

ZeroPadding border(std::int64_t before = 4, std::int64_t extent = 5) {
  return {2, 0, before, extent, {13, 7, 7}};
}

TEST(TrimPaddingLoops, TrimsTheLoopOverRows) {
  LoopNest nest = parse_nest(kConvolution);
  EXPECT_TRUE(trim_padding_loops(nest, border()));
  const std::string text = to_string(nest);
  EXPECT_NE(text.find("for r in 0..((((((12 - i) max 0) // 4) min 3) - (((7 - i) max 0) // 4)) max "
                      "0) of 3 carried"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("w[((((7 - i) max 0) // 4) + r), s, c, o]"), std::string::npos) << text;
  EXPECT_EQ(faults_of(nest), std::vector<std::string>());
}

TEST(TrimPaddingLoops, RefusesUnsafeAndUselessTrims) {
  const std::vector<std::string> others = {
      with("(p[(i + (r * 4)), (j + s), c] * w[r, s, c, o])",
           "(p[(i + (r * 4)), (j + s), c] + w[r, s, c, o])"),
      with("t0 = sum(t0, ", "t0 = max(t0, "),
      with("p[(i + (r * 4)), (j + s), c]", "p[(j + (r * 4)), i, c]"),  // rows of a tile differ
      with("p[(i + (r * 4)), (j + s), c]",
           "p[((i + (r * 4)) + s), j, c]"),                       // and so do inner loops
      with("y[i, j, o] = t0", "y[i, j, o] = (t0 + p[i, j, 0])"),  // read elsewhere as well
  };
  for (const std::string& text : others) {
    LoopNest nest = parse_nest(text);
    const std::string before = to_string(nest);
    EXPECT_FALSE(trim_padding_loops(nest, border())) << text;
    EXPECT_EQ(to_string(nest), before);
  }
  LoopNest nest = parse_nest(kConvolution);
  EXPECT_FALSE(trim_padding_loops(nest, border(0, 13)));  // zero-sized border
  ZeroPadding other = border();
  other.dims = {13, 49};  // another order
  EXPECT_FALSE(trim_padding_loops(nest, other));
}

}  // namespace
}  // namespace tenon::nests::trim_padding_loops_test
