// The interpreter of nests, and the check of passes over nests.

#include "base/error.h"
#include "ir/tensor.h"
#include "nests/parse.h"
#include "nests/schedule/split.h"
#include "testing/verify/nest_check.h"
#include "testing/verify/nest_interpreter.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

using Role = nests::NestSequence::BufferRole;

// One nest whose buffers are the sequence's, in order.
nests::NestWork work_of(const char* text) {
  nests::NestWork work;
  nests::LoopNest nest = nests::parse_nest(text);
  std::size_t operands = 0, results = 0;
  nests::NestSequence::NestCall part;
  for (const nests::NestBuffer& buffer : nest.buffers) {
    if (buffer.storage == nests::StorageClass::Scratch) continue;
    const bool is_result = buffer.storage == nests::StorageClass::Result;
    part.buffers.push_back(work.sequence.buffers.size());
    work.sequence.buffers.push_back({is_result ? Role::Result : Role::Operand,
                                     is_result ? results++ : operands++, buffer.dtype,
                                     buffer.dims});
  }
  part.nest = std::move(nest);
  work.is_constant.assign(work.sequence.buffers.size(), false);
  work.sequence.parts = {std::move(part)};
  return work;
}

constexpr const char* kRowSums = R"(kernel sums (out y: f32[2], x: f32[2, 3]) {
  for i in 0..2 parallel {
    t0 = 0.0
    for k in 0..3 carried {
      t0 = sum(t0, x[i, k])
    }
    y[i] = t0
  }
})";

TEST(NestInterpreter, SumsRows) {
  const Tensor x = Tensor::of<float>(DType::F32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const testing::NestResults run = testing::interpret(work_of(kRowSums), {x}, {});
  EXPECT_FALSE(run.has_data_error);
  EXPECT_EQ(run.results.at(0).reals, (std::vector<double>{6, 15}));
}

TEST(NestInterpreter, FillsOutOfBoundsAndBindsSymbols) {
  const nests::NestWork work =
      work_of(R"(kernel shifted (out y: i32[N], x: i32[N]) given [N] <N in [1, 64]> {
  for i in 0..dim(N) {
    y[i] = x[(i - 1)] else 7
  }
})");
  const Tensor x = Tensor::of<std::int32_t>(DType::I32, {3}, {1, 2, 3});
  const testing::NestResults run = testing::interpret(work, {x}, {{"N", Dim(3)}});
  EXPECT_EQ(run.results.at(0).integers, (std::vector<std::int64_t>{7, 1, 2}));
}

TEST(NestInterpreter, RefusesAnAccessOutsideOfItsBuffer) {
  const nests::NestWork work = work_of(R"(kernel far (out y: f32[2], x: f32[2]) {
  for i in 0..2 {
    y[i] = x[(i + 1)]
  }
})");
  const Tensor x = Tensor::of<float>(DType::F32, {2}, {1, 2});
  EXPECT_NE(
      error_text([&] { testing::interpret(work, {x}, {}); }).find("an access leaves buffer 'x'"),
      std::string::npos);
}

TEST(NestCheck, AcceptsStripMining) {
  const nests::NestWork before = work_of(kRowSums);
  nests::NestWork after = before;
  nests::LoopNest& nest = after.sequence.parts[0].nest;
  nests::split(nest, nest.body, nest.body.front().body[1].id, 2);
  const testing::NestCheck check = testing::compare_nests(before, after);
  EXPECT_TRUE(check.has_run);
  EXPECT_EQ(check.difference, "");
}

TEST(NestCheck, FindsALostTerm) {
  const nests::NestWork before = work_of(kRowSums);
  nests::NestWork after = before;
  after.sequence.parts[0].nest.body.front().body[1].extent = 2;
  const testing::NestCheck check = testing::compare_nests(before, after);
  EXPECT_TRUE(check.difference.starts_with("result 0: element 0 is ")) << check.difference;
}

TEST(NestCheck, SkipsUnchangedAndLongNests) {
  const nests::NestWork before = work_of(kRowSums);
  EXPECT_FALSE(testing::compare_nests(before, before).has_run);
  nests::NestWork after = before;
  after.sequence.parts[0].nest.body.front().body[1].extent = 2;
  testing::NestCheckOptions options;
  options.most_operations = 3;
  EXPECT_FALSE(testing::compare_nests(before, after, options).has_run);
}

}  // namespace
}  // namespace tenon
