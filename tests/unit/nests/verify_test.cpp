#include "base/error.h"
#include "base/text.h"
#include "nests/parse.h"
#include "nests/verify.h"

#include <gtest/gtest.h>

namespace tenon::nests::verify_test {
namespace {

std::string faults(const std::string& body,
                   const std::string& buffers = "out y: f32[8], x: f32[8], scratch s: f32[8]",
                   const std::string& given = "") {
  return join(faults_of(parse_nest(concat("kernel k (", buffers, ")", given, " {\n", body, "}\n"))),
              "; ");
}

// Each fault below is this nest with one thing wrong.
TEST(VerifyNest, AcceptsSoundNests) {
  EXPECT_EQ(faults("for io in 0..2 parallel { for ii in 0..4 vector by 4 { y[((io * 4) + ii)] = "
                   "x[((io * 4) + ii)] } }"),
            "");
  EXPECT_EQ(faults("for i in 0..8 { s[i] = x[i] } for i in 0..8 { y[i] = s[i] }"), "");
  EXPECT_EQ(faults("for i in 0..8 { t0 = 0.0 for r in 0..8 carried vector by 8 { t0 = sum(t0, "
                   "x[r]) } y[i] = t0 }"),
            "");
}

TEST(VerifyNest, Bounds) {
  EXPECT_EQ(faults("for i in 0..9 { y[i] = 0.0 }"), "y is accessed at 8 along axis 0, which has 8");
  EXPECT_EQ(faults("for i in 0..8 { y[i] = x[(i + 1)] }"),
            "x is accessed at 8 along axis 0, which has 8");
  EXPECT_EQ(faults("for i in 0..8 { y[i] = x[(i - 1)] }"), "x is accessed at -1 along axis 0");
  EXPECT_EQ(faults("for i in 0..8 { y[i] = x[(i - 1)] else 0.0 }"), "");
  // A limit is respected, and one that is too large is found.
  EXPECT_EQ(faults("for io in 0..3 { for ii in 0..(3 min (8 - (io * 3))) of 3 { y[((io * 3) + ii)] "
                   "= 0.0 } }"),
            "");
  EXPECT_EQ(faults("for io in 0..3 { for ii in 0..(3 min (9 - (io * 3))) of 3 { y[((io * 3) + ii)] "
                   "= 0.0 } }"),
            "y is accessed at 8 along axis 0, which has 8");
  // A condition excludes positions; a condition that never holds excludes all.
  EXPECT_EQ(faults("for i in 0..9 { for if in 0..(1 min (8 - i)) of 1 { y[i] = 0.0 } }"), "");
  EXPECT_EQ(faults("for i in 0..8 { for if in 0..(1 min i) of 1 { y[i] = x[(i - 1)] } }"), "");
  EXPECT_EQ(faults("for i in 0..9 { for if in 0..(1 min (((i min 3) min (i - 9)) + 1)) of 1 { y[9] "
                   "= 0.0 } }"),
            "");
  EXPECT_EQ(faults("for i in 0..9 { for if in 0..(1 min (9 - i)) of 1 { y[i] = 0.0 } }"),
            "y is accessed at 8 along axis 0, which has 8");
  // With symbolic extents.
  const std::string symbolic = "out y: f32[N], x: f32[N]",
                    given = " given [N, N + 1] <N in [1, 9]>";
  EXPECT_EQ(faults("for i in 0..dim(N) { y[i] = x[i] }", symbolic, given), "");
  EXPECT_EQ(faults("for i in 0..dim(N + 1) { y[i] = 0.0 }", symbolic, given),
            "y is accessed at N along axis 0, which has N");
}

TEST(VerifyNest, WritesBeforeReads) {
  EXPECT_EQ(faults("for i in 0..8 { y[i] = s[i] }"), "s is read before anything is written to it");
  EXPECT_EQ(faults("for i in 0..8 { y[i] = s[i] s[i] = x[i] }"),
            "s is read before anything is written to it");
  EXPECT_EQ(faults("for i in 0..4 { s[i] = x[i] } for i in 0..8 { y[i] = s[i] }"),
            "s is read at 7 along axis 0, where nothing was written");
  // A value that one iteration of a loop leaves to the next.
  EXPECT_EQ(faults("for i in 0..8 carried { y[i] = s[0] s[0] = x[i] }"), "");
  EXPECT_EQ(faults("for i in 0..8 { y[i] = x[i] x[i] = 0.0 }"), "x is only read, and written");
}

TEST(VerifyNest, ParallelLoops) {
  EXPECT_EQ(faults("for i in 0..8 parallel { y[0] = x[i] }"),
            "all passes of loop i write the same element of y");
  EXPECT_EQ(faults("for i in 0..4 parallel { for j in 0..4 { y[(i + j)] = 0.0 } }"),
            "passes of loop i write elements of y that others write, along j");
  EXPECT_EQ(
      faults("for i in 0..7 { y[i] = (y[(i + 1)] + 1.0) }", "out y: f32[8]"),
      "y is read before anything is written to it; passes of loop i read of y what others write");
  EXPECT_EQ(faults("t0 = 0.0 for i in 0..8 { t0 = sum(t0, x[i]) } y[0] = t0"),
            "passes of loop i are said to be independent, and fold into t0");
  // Scratch is private to a thread and reused, but lanes would share it.
  EXPECT_EQ(faults("for i in 0..8 parallel { s[0] = x[i] y[i] = s[0] }"), "");
  EXPECT_EQ(faults("for i in 0..8 vector by 8 { s[0] = x[i] y[i] = s[0] }"),
            "all passes of loop i write the same element of s");
}

TEST(VerifyNest, LoopKinds) {
  EXPECT_EQ(faults("for i in 0..2 { for j in 0..4 parallel { y[((i * 4) + j)] = 0.0 } }"),
            "loop j is shared out, yet not all that is around it and beside it is");
  EXPECT_EQ(faults("for i in 0..8 parallel { y[i] = 0.0 } t0 = 0.0"),
            "loop i is shared out, yet not all that is around it and beside it is");
  EXPECT_EQ(faults("for i in 0..2 jam by 2 { for j in 0..4 jam by 4 { y[((i * 4) + j)] = 0.0 } }"),
            "loop j is a jam inside a jam");
  EXPECT_EQ(faults("for i in 0..8 carried vector by 8 { y[i] = 0.0 }"),
            "passes of loop i depend on each other, and are run side by side");
}

TEST(VerifyNest, LoopNumbersInScope) {
  LoopNest nest = parse_nest(
      "kernel k (out y: f32[8]) {\n  for i in 0..8 { t0 = 1.0 y[i] = t0 }\n  for j in 0..8 { y[j] "
      "= 0.0 }\n}\n");
  LoopNest wrong = nest;
  wrong.body[1].body[0].indices[0] = loop_scalar(0);
  EXPECT_EQ(join(faults_of(wrong), "; "), "the position of loop i is read outside of it");
  wrong = nest;
  wrong.body[1].body[0].value = local_scalar(0, DType::F32);
  EXPECT_EQ(join(faults_of(wrong), "; "), "t0 is read before it has a value");
  wrong = nest;
  wrong.body[0].body[1].view = {4, 4};
  EXPECT_EQ(join(faults_of(wrong), "; "),
            "y has 2 axes and 1 coordinates; y[8] is seen as [4, 4], which is more");
  EXPECT_THROW(verify(wrong), InternalError);
}

}  // namespace
}  // namespace tenon::nests::verify_test
