// Schedule primitives: the text of a nest before and after.
#include "base/error.h"
#include "nests/contraction.h"
#include "nests/parse.h"
#include "nests/schedule/bind.h"
#include "nests/schedule/block_reduction.h"
#include "nests/schedule/cache_read.h"
#include "nests/schedule/collapse.h"
#include "nests/schedule/pack.h"
#include "nests/schedule/pad.h"
#include "nests/schedule/reorder.h"
#include "nests/schedule/specialise.h"
#include "nests/schedule/split.h"
#include "nests/schedule/strip_mine_quotients.h"
#include "nests/verify.h"

#include <gtest/gtest.h>

#include <functional>

namespace tenon::nests::schedule_test {
namespace {

std::size_t loop_of(const LoopNest& nest, const std::string& name) {
  return static_cast<std::size_t>(std::find(nest.loop_names.begin(), nest.loop_names.end(), name) -
                                  nest.loop_names.begin());
}

// Applies a primitive and verifies the nest before and after.
void expect_becomes(const std::string& before, const std::string& after,
                    const std::function<void(LoopNest&)>& change) {
  LoopNest nest = parse_nest(before);
  EXPECT_EQ(faults_of(nest), std::vector<std::string>()) << before;
  change(nest);
  EXPECT_EQ(to_string(nest), after);
  EXPECT_EQ(faults_of(nest), std::vector<std::string>()) << to_string(nest);
}

const std::string kCopy = R"(kernel k (out y: f32[10, 6], x: f32[10, 6]) {
  for i in 0..10 {
    for j in 0..6 {
      y[i, j] = x[i, j]
    }
  }
}
)";

const std::string kProduct = R"(kernel k (out y: f32[8, 4], a: f32[8, 6], b: f32[6, 4]) {
  for i in 0..8 {
    for j in 0..4 {
      t0 = 0.0
      for r in 0..6 carried {
        t0 = sum(t0, (a[i, r] * b[r, j]))
      }
      y[i, j] = (t0 max 0.0)
    }
  }
}
)";

TEST(Split, InnerExtent) {
  expect_becomes(kCopy, R"(kernel k (out y: f32[10, 6], x: f32[10, 6]) {
  for i in 0..10 {
    for jo in 0..2 {
      for ji in 0..3 {
        y[i, ((jo * 3) + ji)] = x[i, ((jo * 3) + ji)]
      }
    }
  }
}
)",
                 [](LoopNest& nest) { split(nest, nest.body, loop_of(nest, "j"), 3); });
}

TEST(Split, RemainderBlock) {
  expect_becomes(kCopy, R"(kernel k (out y: f32[10, 6], x: f32[10, 6]) {
  for ib in 0..3 {
    for ii in 0..(4 min (10 - (ib * 4))) of 4 {
      for j in 0..6 {
        y[((ib * 4) + ii), j] = x[((ib * 4) + ii), j]
      }
    }
  }
}
)",
                 [](LoopNest& nest) { split(nest, nest.body, loop_of(nest, "i"), 4, "b"); });
}

TEST(Split, SymbolicExtent) {
  expect_becomes(
      "kernel k (out y: f32[N]) given [N] <N in [1, 9]> {\n  for i in 0..dim(N) {\n    y[i] = "
      "1.0\n  }\n}\n",
      R"(kernel k (out y: f32[N]) given [N, floor((N - 1)/4) + 1] <N in [1, 9]> {
  for io in 0..dim(floor((N - 1)/4) + 1) {
    for ii in 0..(4 min (dim(N) - (io * 4))) of 4 {
      y[((io * 4) + ii)] = 1.0
    }
  }
}
)",
      [](LoopNest& nest) { split(nest, nest.body, 0, 4); });
}

TEST(Split, SequentialHalves) {
  expect_becomes(kProduct, R"(kernel k (out y: f32[8, 4], a: f32[8, 6], b: f32[6, 4]) {
  for i in 0..8 {
    for j in 0..4 {
      t0 = 0.0
      for r in 0..4 carried {
        t0 = sum(t0, (a[i, r] * b[r, j]))
      }
      for r in 0..2 carried {
        t0 = sum(t0, (a[i, (r + 4)] * b[(r + 4), j]))
      }
      y[i, j] = (t0 max 0.0)
    }
  }
}
)",
                 [](LoopNest& nest) { split_at(nest, nest.body, loop_of(nest, "r"), 4); });
}

TEST(Split, RefusesLoopsWithALimit) {
  LoopNest nest = parse_nest(kCopy);
  const SplitLoop made = split(nest, nest.body, loop_of(nest, "i"), 4);
  EXPECT_THROW(split(nest, nest.body, made.inner, 2), InternalError);
}

TEST(Reorder, NestedLoops) {
  expect_becomes(kProduct, R"(kernel k (out y: f32[8, 4], a: f32[8, 6], b: f32[6, 4]) {
  for j in 0..4 {
    for i in 0..8 {
      t0 = 0.0
      for r in 0..6 carried {
        t0 = sum(t0, (a[i, r] * b[r, j]))
      }
      y[i, j] = (t0 max 0.0)
    }
  }
}
)",
                 [](LoopNest& nest) {
                   reorder(nest.body, {loop_of(nest, "j"), loop_of(nest, "i")});
                 });
}

TEST(Reorder, RefusesOrderedLoops) {
  LoopNest nest = parse_nest(
      "kernel k (out y: f32[9, 9]) {\n  for i in 0..8 carried { for j in 0..8 carried { y[(i + 1), "
      "j] = y[i, (j + 1)] } }\n}\n");
  EXPECT_THROW(reorder(nest.body, {1, 0}), InternalError);
  nest = parse_nest(kProduct);  // imperfectly nested
  EXPECT_THROW(reorder(nest.body, {loop_of(nest, "r"), loop_of(nest, "j")}), InternalError);
  nest = parse_nest(kCopy);  // a limit depends on the outer loop
  const SplitLoop made = split(nest, nest.body, loop_of(nest, "i"), 4);
  EXPECT_THROW(reorder(nest.body, {made.inner, made.outer}), InternalError);
}

TEST(Collapse, ContiguousLoops) {
  expect_becomes(kCopy, R"(kernel k (out y: f32[10, 6], x: f32[10, 6]) {
  for ij in 0..60 {
    y as [60] at [ij] = x as [60] at [ij]
  }
}
)",
                 [](LoopNest& nest) { EXPECT_TRUE(collapse(nest, 0, 1)); });
}

TEST(Collapse, RefusesTransposedReads) {
  LoopNest nest = parse_nest(
      "kernel k (out y: f32[4, 6], x: f32[6, 4]) {\n  for i in 0..4 { for j in 0..6 { y[i, j] = "
      "x[j, i] } }\n}\n");
  EXPECT_FALSE(collapse(nest, 0, 1));
  nest = parse_nest(
      "kernel k (out y: f32[4, 6]) {\n  for i in 0..4 { for j in 0..6 { y[i, j] = f32((i + j)) } "
      "}\n}\n");
  EXPECT_FALSE(collapse(nest, 0, 1));
}

TEST(Bind, SetsLoopKinds) {
  expect_becomes(kProduct, R"(kernel k (out y: f32[8, 4], a: f32[8, 6], b: f32[6, 4]) {
  for i in 0..8 parallel {
    for j in 0..4 jam by 2 {
      t0 = 0.0
      for r in 0..6 carried vector by 2 {
        t0 = sum(t0, (a[i, r] * b[r, j]))
      }
      y[i, j] = (t0 max 0.0)
    }
  }
}
)",
                 [](LoopNest& nest) {
                   bind_loop(nest.body, loop_of(nest, "i"), LoopKind::Parallel);
                   bind_loop(nest.body, loop_of(nest, "j"), LoopKind::Jam, 2);
                   bind_loop(nest.body, loop_of(nest, "r"), LoopKind::Vector, 2);
                 });
}

TEST(Bind, RefusesDependentIterations) {
  LoopNest nest = parse_nest(kProduct);
  EXPECT_THROW(bind_loop(nest.body, loop_of(nest, "r"), LoopKind::Parallel), InternalError);
  EXPECT_THROW(bind_loop(nest.body, loop_of(nest, "r"), LoopKind::Jam, 2), InternalError);
  bind_loop(nest.body, loop_of(nest, "j"), LoopKind::Jam, 2);
  EXPECT_THROW(bind_loop(nest.body, loop_of(nest, "i"), LoopKind::Jam, 2), InternalError);
}

TEST(Pack, PacksAnOperand) {
  expect_becomes(kProduct, R"(kernel k (out y: f32[8, 4], a: f32[8, 6], b: f32[2, 6, 3]) {
  for i in 0..8 {
    for jo in 0..2 {
      for ji in 0..(3 min (4 - (jo * 3))) of 3 {
        t0 = 0.0
        for r in 0..6 carried {
          t0 = sum(t0, (a[i, r] * b[jo, r, ji]))
        }
        y[i, ((jo * 3) + ji)] = (t0 max 0.0)
      }
    }
  }
}
)",
                 [](LoopNest& nest) {
                   const SplitLoop columns = split(nest, nest.body, loop_of(nest, "j"), 3);
                   const auto packing =
                       pack(nest, nest.body, 2,
                            {{columns.outer, 2}, {loop_of(nest, "r"), 6}, {columns.inner, 3}}, 4);
                   ASSERT_TRUE(packing);
                   // Rows of 4 in panels of 3: padding after the last column stays zero.
                   const std::vector<float> source{0,  1,  2,  3,  10, 11, 12, 13, 20, 21, 22, 23,
                                                   30, 31, 32, 33, 40, 41, 42, 43, 50, 51, 52, 53};
                   Tensor tensor(DType::F32, {6, 4});
                   std::copy(source.begin(), source.end(),
                             reinterpret_cast<float*>(tensor.mutable_bytes().data()));
                   std::vector<float> made(2 * 6 * 3, 0);
                   pack(*packing, tensor, reinterpret_cast<std::byte*>(made.data()));
                   EXPECT_EQ(std::vector<float>(made.begin(), made.begin() + 6),
                             (std::vector<float>{0, 1, 2, 10, 11, 12}));
                   EXPECT_EQ(std::vector<float>(made.begin() + 18, made.begin() + 24),
                             (std::vector<float>{3, 0, 0, 13, 0, 0}));
                 });
}

TEST(Pack, RefusesOperandsReadElsewhere) {
  LoopNest nest = parse_nest(kProduct);
  EXPECT_FALSE(pack(nest, nest.body, 2, {{loop_of(nest, "j"), 4}}, 4));
  EXPECT_EQ(to_string(nest), kProduct);
}

TEST(BlockReduction, BlocksEncloseTheRows) {
  expect_becomes(kProduct,
                 R"(kernel k (out y: f32[8, 4], a: f32[8, 6], b: f32[6, 4], scratch s3: f32[8, 4]) {
  for j in 0..4 vector by 4 {
    for i in 0..8 jam by 4 {
      s3[i, j] = 0.0
    }
    for ro in 0..3 carried {
      for i in 0..8 jam by 4 {
        t0 = s3[i, j]
        for ri in 0..2 carried {
          t0 = sum(t0, (a[i, ((ro * 2) + ri)] * b[((ro * 2) + ri), j]))
        }
        s3[i, j] = t0
      }
    }
    for i in 0..8 jam by 4 {
      t0 = s3[i, j]
      y[i, j] = (t0 max 0.0)
    }
  }
}
)",
                 [](LoopNest& nest) {
                   const std::size_t i = loop_of(nest, "i"), j = loop_of(nest, "j");
                   reorder(nest.body, {j, i});
                   bind_loop(nest.body, j, LoopKind::Vector, 4);
                   bind_loop(nest.body, i, LoopKind::Jam, 4);
                   split(nest, nest.body, loop_of(nest, "r"), 2);
                   block_reduction(nest, nest.body, {i}, j);
                 });
}

// The outer reduction loops enclose all loops around the sum.
TEST(BlockReduction, SeveralReductionLoops) {
  expect_becomes(
      R"(kernel k (out y: f32[2, 3, 4], a: f32[2, 3, 5, 6], b: f32[5, 6, 4]) {
  for j in 0..4 vector by 4 {
    for l in 0..2 {
      for i in 0..3 {
        t0 = 0.0
        for q in 0..5 carried {
          for r in 0..6 carried {
            t0 = sum(t0, (a[l, i, q, r] * b[q, r, j]))
          }
        }
        y[l, i, j] = t0
      }
    }
  }
}
)",
      R"(kernel k (out y: f32[2, 3, 4], a: f32[2, 3, 5, 6], b: f32[5, 6, 4], scratch s3: f32[2, 3, 4]) {
  for j in 0..4 vector by 4 {
    for l in 0..2 {
      for i in 0..3 {
        s3[l, i, j] = 0.0
      }
    }
    for q in 0..5 carried {
      for ro in 0..2 carried {
        for l in 0..2 {
          for i in 0..3 {
            t0 = s3[l, i, j]
            for ri in 0..3 carried {
              t0 = sum(t0, (a[l, i, q, ((ro * 3) + ri)] * b[q, ((ro * 3) + ri), j]))
            }
            s3[l, i, j] = t0
          }
        }
      }
    }
    for l in 0..2 {
      for i in 0..3 {
        t0 = s3[l, i, j]
        y[l, i, j] = t0
      }
    }
  }
}
)",
      [](LoopNest& nest) {
        split(nest, nest.body, loop_of(nest, "r"), 3);
        block_reduction(nest, nest.body, {loop_of(nest, "l"), loop_of(nest, "i")},
                        loop_of(nest, "j"), 2);
      });
}

TEST(BlockReduction, RefusesOtherReductions) {
  LoopNest nest = parse_nest(kCopy);
  EXPECT_THROW(block_reduction(nest, nest.body, {1}, 0), InternalError);
}

void runs_of_16(LoopNest& nest) { strip_mine_quotients(nest, 16); }

// An operand indexed by the quotient is read, and multiplied, once per run of the inner loop.
TEST(StripMineQuotients, FactorPerRun) {
  expect_becomes(R"(kernel k (out y: f32[4], x: f32[6], w: i8[6, 4], s: f32[2, 4]) {
  for j in 0..4 {
    t0 = 0.0
    for r in 0..6 carried {
      t0 = sum(t0, (x[r] * (f32(w[r, j]) * s[(r // 3), j])))
    }
    y[j] = t0
  }
}
)",
                 R"(kernel k (out y: f32[4], x: f32[6], w: i8[6, 4], s: f32[2, 4]) {
  for j in 0..4 {
    t0 = 0.0
    for ro in 0..2 carried {
      t1 = 0.0
      for ri in 0..3 carried {
        t1 = sum(t1, (x[((ro * 3) + ri)] * f32(w[((ro * 3) + ri), j])))
      }
      t0 = sum(t0, (t1 * s[ro, j]))
    }
    y[j] = t0
  }
}
)",
                 runs_of_16);
}

TEST(StripMineQuotients, TwoTerms) {
  expect_becomes(
      R"(kernel k (out y: f32[4], x: f32[2, 3], z: f32[2, 3], w: f32[2, 3, 4], s: f32[2, 4]) {
  for j in 0..4 {
    t0 = 0.0
    for g in 0..2 carried {
      for r in 0..3 carried {
        t0 = sum(t0, (((x[g, r] * w[g, r, j]) + (z[g, r] * floor(w[g, r, j]))) * s[g, j]))
      }
    }
    y[j] = t0
  }
}
)",
      R"(kernel k (out y: f32[4], x: f32[2, 3], z: f32[2, 3], w: f32[2, 3, 4], s: f32[2, 4]) {
  for j in 0..4 {
    t0 = 0.0
    for g in 0..2 carried {
      t1 = 0.0
      t2 = 0.0
      for r in 0..3 carried {
        t1 = sum(t1, (x[g, r] * w[g, r, j]))
        t2 = sum(t2, (z[g, r] * floor(w[g, r, j])))
      }
      t0 = sum(t0, ((t1 + t2) * s[g, j]))
    }
    y[j] = t0
  }
}
)",
      runs_of_16);
}

// Rows of a gather are contiguous; runs shorter than vectors are left to the lanes.
TEST(StripMineQuotients, RowsOfAGather) {
  expect_becomes(R"(kernel k (out y: f32[4, 32], x: f32[9, 16], n: i64[4, 2], z: f32[4, 16]) {
  for i in 0..4 {
    for j in 0..32 {
      y[i, j] = checked x[n[i, (j // 16)], (j % 16)]
    }
    for k in 0..16 {
      y[i, k] = z[i, (k // 4)]
    }
  }
}
)",
                 R"(kernel k (out y: f32[4, 32], x: f32[9, 16], n: i64[4, 2], z: f32[4, 16]) {
  for i in 0..4 {
    for jo in 0..2 {
      for ji in 0..16 {
        y[i, ((jo * 16) + ji)] = checked x[n[i, jo], ji]
      }
    }
    for k in 0..16 {
      y[i, k] = z[i, (k // 4)]
    }
  }
}
)",
                 runs_of_16);
}

// Uneven runs, matrix products and other reductions stay.
TEST(StripMineQuotients, RefusesOtherLoops) {
  for (const std::string& text :
       {std::string(R"(kernel k (out y: f32[4], x: f32[7], s: f32[3, 4]) {
  for j in 0..4 {
    t0 = 0.0
    for r in 0..7 carried {
      t0 = sum(t0, (x[r] * s[(r // 3), j]))
    }
    y[j] = t0
  }
}
)"),
        std::string(R"(kernel k (out y: f32[4], x: f32[2, 3], s: f32[2, 4]) {
  for j in 0..4 {
    t0 = 0.0
    for g in 0..2 carried {
      for r in 0..3 carried {
        t0 = sum(t0, (x[g, r] * s[g, j]))
      }
    }
    y[j] = t0
  }
}
)"),
        std::string(R"(kernel k (out y: f32[4], x: f32[2, 3], w: f32[2, 3, 4], s: f32[2, 4]) {
  for j in 0..4 {
    t0 = -inf
    for g in 0..2 carried {
      for r in 0..3 carried {
        t0 = max(t0, ((x[g, r] * w[g, r, j]) * s[g, j]))
      }
    }
    y[j] = t0
  }
}
)")}) {
    expect_becomes(text, text, runs_of_16);
  }
}

// A sequence of one nest with the nest's buffers.
NestSequence sequence_of(const std::string& text) {
  NestSequence sequence;
  NestSequence::NestCall part;
  part.nest = parse_nest(text);
  for (std::size_t k = 0; k < part.nest.buffers.size(); ++k) {
    const NestBuffer& buffer = part.nest.buffers[k];
    const bool is_result = buffer.storage == StorageClass::Result;
    sequence.buffers.push_back(
        {is_result ? NestSequence::BufferRole::Result : NestSequence::BufferRole::Operand, k,
         buffer.dtype, buffer.dims});
    part.buffers.push_back(k);
  }
  sequence.parts.push_back(std::move(part));
  return sequence;
}

TEST(CompileStage, TransposesAnOperand) {
  NestSequence sequence = sequence_of(R"(kernel k (out y: f32[8, 4], a: f32[8, 6], b: f32[4, 6]) {
  for i in 0..8 { for j in 0..4 { t0 = 0.0 for r in 0..6 carried { t0 = sum(t0, (a[i, r] * b[j, r])) } y[i, j] = t0 } }
}
)");
  NestSequence::NestCall& part = sequence.parts.front();
  const Contraction sum = *find_contraction(part.nest);
  const NestSequence::NestCall copy =
      cache_read(sequence, part, sum, sum.b, {sum.reduction[0], sum.parallel[1]}, {6, 5});
  EXPECT_EQ(to_string(copy.nest), R"(kernel turn (x: f32[4, 6], out t: f32[6, 5]) {
  for r in 0..6 {
    for j in 0..4 {
      t[r, j] = x[j, r]
    }
  }
}
)");
  EXPECT_EQ(to_string(part.nest),
            R"(kernel k (out y: f32[8, 4], a: f32[8, 6], b: f32[4, 6], t3: f32[6, 5]) {
  for i in 0..8 {
    for j in 0..4 {
      t0 = 0.0
      for r in 0..6 carried {
        t0 = sum(t0, (a[i, r] * t3[r, j]))
      }
      y[i, j] = t0
    }
  }
}
)");
  EXPECT_EQ(faults_of(copy.nest), std::vector<std::string>());
}

TEST(Pad, CopiesWithPadding) {
  NestSequence sequence = sequence_of(R"(kernel k (out y: f32[8, 4], x: f32[8], w: f32[3, 4]) {
  for i in 0..8 { for j in 0..4 { t0 = 0.0 for r in 0..3 carried { t0 = sum(t0, (x[((i + r) - 1)] else 0.0 * w[r, j])) } y[i, j] = t0 } }
}
)");
  const NestSequence::NestCall part = sequence.parts.front();
  const std::vector<NestSequence::NestCall> parts =
      split_padding(sequence, part, {false, false, true});
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(to_string(parts[0].nest), R"(kernel pad (x: f32[8], out p: f32[10]) {
  for i0 in 0..10 {
    p[i0] = x[(i0 - 1)] else 0.0
  }
}
)");
  EXPECT_NE(to_string(parts[1].nest).find("(p3[(((i + r) - 1) + 1)] * w[r, j])"), std::string::npos)
      << to_string(parts[1].nest);
  for (const NestSequence::NestCall& made : parts)
    EXPECT_EQ(faults_of(made.nest), std::vector<std::string>());
}

TEST(Specialise, ReplacesSymbols) {
  NestSequence sequence = sequence_of(
      "kernel k (out y: f32[N, 4], x: f32[N, 4]) given [N] <N in [1, 9]> {\n"
      "  for i in 0..dim(N) { for j in 0..4 { y[i, j] = (x[i, j] * f32(dim(N))) } }\n}\n");
  EXPECT_TRUE(depends_on(sequence, {{"N", Dim(3)}}));
  EXPECT_EQ(to_string(specialised(sequence, {{"N", Dim(3)}}).parts.front().nest),
            R"(kernel k (out y: f32[3, 4], x: f32[3, 4]) {
  for i in 0..3 {
    for j in 0..4 {
      y[i, j] = (x[i, j] * f32(3))
    }
  }
}
)");
}

}  // namespace
}  // namespace tenon::nests::schedule_test
