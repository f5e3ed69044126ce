// Trimming of loops over causally masked keys.
#include "nests/parse.h"
#include "nests/schedule/trim_masked_loops.h"
#include "nests/verify.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tenon::nests::trim_masked_loops_test {
namespace {

// Blocks of 8 scores, softmax, products with the values; tiles of 16 rows.
const std::string kAttention =
    R"(kernel k (out y: f32[64, 4], q: f32[64, 3], k: f32[3, 64], v: f32[64, 4], scratch s: f32[16, 64], scratch p: f32[16, 64]) {
  for b in 0..4 parallel {
    for ko in 0..8 {
      for ki in 0..8 vector by 8 {
        for i in 0..16 jam by 4 {
          t0 = 0.0
          for d in 0..3 carried {
            t0 = sum(t0, (q[((b * 16) + i), d] * k[d, ((ko * 8) + ki)]))
          }
          s[i, ((ko * 8) + ki)] = t0
        }
      }
    }
    for r in 0..16 {
      t1 = -inf
      for m in 0..64 carried {
        t1 = max(t1, ((m <= ((b * 16) + r)) ? (s[r, m] * 0.5) : -inf))
      }
      t2 = 0.0
      for e in 0..64 {
        p[r, e] = exp((((e <= ((b * 16) + r)) ? (s[r, e] * 0.5) : -inf) - t1))
      }
      for a in 0..64 carried {
        t2 = sum(t2, p[r, a])
      }
      for n in 0..64 {
        p[r, n] = (p[r, n] / t2)
      }
    }
    for j in 0..4 vector by 4 {
      for i2 in 0..16 jam by 4 {
        t3 = 0.0
        for z in 0..64 carried {
          t3 = sum(t3, (p[i2, z] * v[z, j]))
        }
        y[((b * 16) + i2), j] = t3
      }
    }
  }
}
)";

std::string with(const std::string& what, const std::string& instead) {
  std::string text = kAttention;
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + instead.size())) {
    text.replace(at, what.size(), instead);
    ++found;
  }
  EXPECT_GT(found, 0U) << what;
  return text;
}

TEST(TrimMaskedLoops, TrimsLoopsOverKeys) {
  LoopNest nest = parse_nest(kAttention);
  EXPECT_TRUE(trim_masked_loops(nest));
  std::string expected = with("ko in 0..8 ", "ko in 0..(8 min ((b * 2) + 2)) of 8 ");
  for (std::size_t at = expected.find("0..64"); at != std::string::npos;
       at = expected.find("0..64", at + 10))
    expected.replace(at, 5, "0..(64 min ((b * 16) + 16)) of 64");
  EXPECT_EQ(to_string(nest), expected);
  EXPECT_EQ(faults_of(nest), std::vector<std::string>());
}

// Rows that see more keys, and the mask with exchanged branches.
TEST(TrimMaskedLoops, OtherMasks) {
  LoopNest nest = parse_nest(with("<= ((b * 16) + r)", "< ((b * 16) + (r + 3))"));
  EXPECT_TRUE(trim_masked_loops(nest));
  EXPECT_NE(to_string(nest).find("for z in 0..(64 min ((b * 16) + 32)) of 64"), std::string::npos)
      << to_string(nest);
  nest = parse_nest(with("((m <= ((b * 16) + r)) ? (s[r, m] * 0.5) : -inf)",
                         "((((b * 16) + r) < m) ? -inf : (s[r, m] * 0.5))"));
  EXPECT_TRUE(trim_masked_loops(nest));
  EXPECT_NE(to_string(nest).find("for m in 0..(64 min ((b * 16) + 16)) of 64"), std::string::npos)
      << to_string(nest);
}

TEST(TrimMaskedLoops, RefusesUsesOfMaskedKeys) {
  const std::vector<std::string> others = {
      with("t2 = sum(t2, p[r, a])", "t2 = sum(t2, s[r, a])"),    // a sum of scores
      with("(p[i2, z] * v[z, j])", "(p[i2, z] + v[z, j])"),      // values that are added
      with("t1 = max(t1, ", "t1 = min(t1, "),                    // another reduction
      with("(s[r, e] * 0.5) : -inf", "(s[r, e] * 0.5) : -9.0"),  // masked keys contribute
      with("<= ((b * 16) + r)", "< ((b * 16) + r)"),             // the first row is fully masked
      with("<= ((b * 16) + r)", "<= ((b * 3) + r)"),             // tiles end inside blocks
      with("p[r, n] = (p[r, n] / t2)",
           "p[r, n] = (p[r, n] / s[r, n])"),  // 0 / 0 for fully masked rows
      with("y[((b * 16) + i2), j] = t3",
           "y[((b * 16) + i2), j] = (t3 + p[i2, 63])")};  // read elsewhere
  for (const std::string& text : others) {
    LoopNest nest = parse_nest(text);
    const std::string before = to_string(nest);
    EXPECT_FALSE(trim_masked_loops(nest)) << text;
    EXPECT_EQ(to_string(nest), before);
  }
}

}  // namespace
}  // namespace tenon::nests::trim_masked_loops_test
