#include "program/in_place.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

using BufferKind = Program::BufferKind;

// Buffers: 0 the input, 1 the output, 2 in the arena, 3 a view of the input.
Program program_of(const std::vector<std::vector<std::uint32_t>>& steps) {
  Program program;
  for (const BufferKind place :
       {BufferKind::Input, BufferKind::Output, BufferKind::Arena, BufferKind::View}) {
    Program::Buffer& buffer = program.buffers.emplace_back();
    buffer.place = place;
  }
  program.inputs = {0};
  program.outputs = {1};
  for (const std::vector<std::uint32_t>& buffers : steps)
    program.steps.emplace_back().buffers = buffers;
  return program;
}

TEST(InPlaceOrder, RefusesReadsAfterTheWrite) {
  EXPECT_TRUE(is_read_first(program_of({{0, 2}, {2, 0, 1}}), 0, 0));
  EXPECT_TRUE(is_read_first(program_of({{0, 2}, {2, 1}, {1, 2}}), 0, 0));
  EXPECT_FALSE(is_read_first(program_of({{2, 0, 1}, {0, 2}}), 0, 0));
}

TEST(InPlaceOrder, ReadsOfViewsCount) {
  EXPECT_FALSE(is_read_first(program_of({{2, 1}, {3, 2}}), 0, 0));
}

TEST(InPlaceOrder, RequiresAWrittenOutput) {
  EXPECT_FALSE(is_read_first(program_of({{0, 2}}), 0, 0));
  Program program = program_of({{0, 2}, {2, 1}});
  program.outputs = {1, 1};
  EXPECT_FALSE(is_read_first(program, 0, 0));
  program.outputs = {0};
  EXPECT_FALSE(is_read_first(program, 0, 0));
}

// A body that runs twice: its second run repeats the reads of the first.
TEST(InPlaceOrder, BodiesRepeatReads) {
  Program program = program_of({{}, {0, 2}, {2, 1}});
  program.steps[0].kind = Program::StepKind::Loop;
  program.loops.emplace_back().end = 3;
  EXPECT_FALSE(is_read_first(program, 0, 0));
  program.loops[0].end = 2;
  EXPECT_TRUE(is_read_first(program, 0, 0));
}

TEST(InPlaceOrder, HostOperatorsMayKeepOperands) {
  Program program = program_of({{}, {2, 1}});
  program.steps[0].kind = Program::StepKind::Host;
  program.operators.emplace_back().operands = {0};
  EXPECT_FALSE(is_read_first(program, 0, 0));
}

}  // namespace
}  // namespace tenon
