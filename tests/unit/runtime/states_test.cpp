// States of programs: initial values, in-place and double-buffered updates, forks, memory of the
// caller; for kernels, host operators and changing shapes.
#include "driver/compile.h"
#include "host/executable.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "program/file.h"
#include "program/text.h"
#include "program/verify.h"
#include "runtime/executor.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace tenon {
namespace {

// A running sum in place, and one that keeps its current value.
constexpr const char* kSums = R"(graph sums (x: f32[2], a: f32[2], b: f32[2]) {
  state a to a1 = f32[2] [1, 2]
  state b to b1 double_buffered = zeros
  a1 = add(a, x)
  b1 = add(b, x)
  y = neg(x)
  return y, a1, b1
}
)";

Program program_of(const char* text) { return driver::compile_graph(parse_graph(text, all_ops())); }

Executor executor_of(const char* text) { return {load_executable(program_of(text)), 1}; }

std::vector<float> state_of(Executor& executor, const std::string& name) {
  const std::size_t state = executor.find_state(name);
  std::vector<float> value(executor.state(state).bytes / sizeof(float));
  executor.read_state(state, value.data());
  return value;
}

// Runs with one input of f32; returns the first output.
std::vector<float> run(Executor& executor, std::vector<float> x) {
  const Program& program = executor.program();
  std::vector<PortValue> inputs(program.inputs.size()), outputs(program.outputs.size());
  inputs[0].shape = {static_cast<std::int64_t>(x.size())};
  inputs[0].data = reinterpret_cast<const std::byte*>(x.data());
  executor.run(inputs, outputs);
  std::int64_t count = 1;
  for (const std::int64_t extent : outputs[0].shape) count *= extent;
  const auto* first = reinterpret_cast<const float*>(outputs[0].data);
  return {first, first + count};
}

using Floats = std::vector<float>;

TEST(ProgramStates, RoundTripInTextAndFile) {
  const Program program = program_of(kSums);
  ASSERT_EQ(program.states.size(), 2u);
  EXPECT_TRUE(program.states[0].may_overwrite);
  EXPECT_FALSE(program.states[1].may_overwrite);
  EXPECT_TRUE(program.states[1].starts_with_zeros);
  const std::string text = to_string(program);
  EXPECT_NE(text.find("  state input 2 output 2 starts with zeros\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" in_place\n"), std::string::npos) << text;
  EXPECT_EQ(to_string(parse_program_text(text)), text);
  const std::string path = ::testing::TempDir() + "states.tnn";
  write_program(program, path);
  const Program read = read_program(path);
  std::remove(path.c_str());
  EXPECT_EQ(read.states, program.states);
  EXPECT_EQ(to_string(read), text);
}

TEST(ProgramStates, RefusesStatesThatDoNotHoldTogether) {
  const auto refusal = [](const auto& damage) {
    Program program = program_of(kSums);
    damage(program);
    return error_text([&] { verify(program); });
  };
  const auto expected = [](const char* where, const char* what) {
    return concat("the program does not hold together\n  at        ", where, "\n  got       ", what,
                  "\n  hint      compile the model again");
  };
  EXPECT_EQ(refusal([](Program& p) { p.states[1].input = 1; }),
            expected("state 1", "a port of another state"));
  EXPECT_EQ(refusal([](Program& p) { p.states[0].output = 7; }),
            expected("state 0", "a port that there is not"));
  EXPECT_EQ(refusal([](Program& p) { p.states[1].may_overwrite = true; }), "no error");
  EXPECT_EQ(refusal([](Program& p) { p.states[0].initial = p.inputs[0]; }),
            expected("state 0", "an initial value that does not fit"));
  EXPECT_EQ(refusal([](Program& p) { p.buffers[p.outputs[1]].dtype = "i32"; }),
            expected("state 0", "a next value of another type"));
}

TEST(States, StartWithTheirInitialValuesAndPassOn) {
  Executor executor = executor_of(kSums);
  EXPECT_EQ(state_of(executor, "a"), (Floats{1, 2}));
  EXPECT_EQ(run(executor, {1, 1}), (Floats{-1, -1}));
  EXPECT_EQ(state_of(executor, "a"), (Floats{2, 3}));
  run(executor, {1, 1});
  EXPECT_EQ(state_of(executor, "a"), (Floats{3, 4}));
  EXPECT_EQ(state_of(executor, "b"), (Floats{2, 2}));
  executor.reset_states();
  EXPECT_EQ(state_of(executor, "a"), (Floats{1, 2}));
  EXPECT_EQ(state_of(executor, "b"), (Floats{0, 0}));
}

TEST(States, KeepThePreviousValueIfDoubleBuffered) {
  Executor executor = executor_of(kSums);
  run(executor, {1, 1});
  run(executor, {5, 5});
  Floats before(2);
  const StateValues& states = executor.states();
  const std::size_t b = executor.find_state("b");
  states.read(states.previous(b), before.data());
  EXPECT_EQ(before, (Floats{1, 1}));
  EXPECT_EQ(states.previous(executor.find_state("a")).memory, nullptr);
}

// Memory is shared until one side writes, at the granularity of a state.
TEST(States, ForksCopyOnWrite) {
  Executor executor = executor_of(kSums);
  run(executor, {1, 1});
  Executor fork = executor.fork();
  const std::size_t a = executor.find_state("a"), b = executor.find_state("b");
  const auto is_shared = [&](std::size_t state) {
    return executor.state(state).memory == fork.state(state).memory;
  };
  EXPECT_TRUE(is_shared(a) && is_shared(b));
  const Floats ten = {10, 10};
  fork.write_state(b, {2}, ten.data());
  EXPECT_TRUE(is_shared(a));
  EXPECT_FALSE(is_shared(b));
  run(fork, {1, 1});
  EXPECT_FALSE(is_shared(a));
  EXPECT_EQ(state_of(executor, "a"), (Floats{2, 3}));
  EXPECT_EQ(state_of(executor, "b"), (Floats{1, 1}));
  EXPECT_EQ(state_of(fork, "a"), (Floats{3, 4}));
  EXPECT_EQ(state_of(fork, "b"), (Floats{11, 11}));
}

TEST(States, LiveInMemoryOfTheCaller) {
  Executor executor = executor_of(kSums);
  Floats a = {3, 3}, b = {4, 4};
  const auto borrowed = [](Floats& values) {
    return std::shared_ptr<std::byte>(std::shared_ptr<void>(),
                                      reinterpret_cast<std::byte*>(values.data()));
  };
  executor.bind_state(executor.find_state("a"), {2}, borrowed(a));
  executor.bind_state(executor.find_state("b"), {2}, borrowed(b));
  run(executor, {1, 2});
  EXPECT_EQ(a, (Floats{4, 5}));
  EXPECT_EQ(b, (Floats{5, 6}));
  Executor fork = executor.fork();  // leaves the caller's memory alone
  run(fork, {1, 1});
  EXPECT_EQ(a, (Floats{4, 5}));
  run(executor, {1, 1});
  EXPECT_EQ(a, (Floats{5, 6}));
}

TEST(States, MustBeWrittenWithoutAnInitialValue) {
  Executor executor = executor_of(R"(graph sum (x: f32[2], a: f32[2]) {
  state a to a1
  a1 = add(a, x)
  y = relu(a)
  return y, a1
}
)");
  EXPECT_EQ(error_text([&] {
              run(executor, {1, 1});
            }),
            "state 'a' has no value before the first run\n  at        program 'sum'\n"
            "  hint      write it first");
  EXPECT_EQ(error_text([&] { executor.find_state("b"); }),
            "no state is called 'b'\n  at        program 'sum'\n  hint      one of a");
  const Floats value = {1, -1};
  executor.write_state(0, {2}, value.data());
  EXPECT_EQ(run(executor, {1, 1}), (Floats{1, 0}));
}

// A cache that grows by the new rows: its shape binds the symbol of each run.
TEST(States, MayGrow) {
  Executor executor =
      executor_of(R"(graph cache <P in [0, 64], N in [1, 8]> (x: f32[N], past: f32[P]) {
  state past to present = f32[0] []
  present = concat(past, x) {axis = 0}
  y = reduce_sum(present) {axes = [0]}
  return y, present
}
)");
  EXPECT_EQ(run(executor, {1, 2}), (Floats{3}));
  EXPECT_EQ(run(executor, {3}), (Floats{6}));
  Executor fork = executor.fork();
  EXPECT_EQ(run(executor, {4}), (Floats{10}));
  EXPECT_EQ(run(fork, {5, 6}), (Floats{17}));
  EXPECT_EQ(state_of(executor, "past"), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(state_of(fork, "past"), (Floats{1, 2, 3, 5, 6}));
}

// A symbol of zeros is taken from another input.
TEST(States, StartWithZerosOfASymbolicShape) {
  Executor executor = executor_of(R"(graph sum <N in [1, 8]> (x: f32[N], a: f32[N]) {
  state a to a1 = zeros
  a1 = add(a, x)
  return a1, a1
}
)");
  EXPECT_EQ(error_text([&] { executor.state(0); }),
            "state 'a' has no shape before the first run\n  at        program 'sum'\n"
            "  hint      write it first");
}

// The number of places that are not zero is known during the run.
TEST(States, PassThroughHostOperators) {
  const Program program = program_of(R"(graph seen (x: f32[3], a: f32[3], last: f32[3]) {
  state a to a1 = f32[3] [0, 1, 2]
  state last to x = zeros
  a1 = add(a, x)
  places = nonzero(a1)
  numbers = cast(places) {to = f32}
  y = reduce_sum(numbers) {axes = [0, 1]}
  return y, a1, x
}
)");
  EXPECT_FALSE(program.is_kernel_only());
  Executor executor(load_executable(program), 1);
  EXPECT_EQ(run(executor, {1, 0, 0}), (Floats{3}));
  EXPECT_EQ(state_of(executor, "last"), (Floats{1, 0, 0}));
  Executor fork = executor.fork();
  EXPECT_EQ(run(executor, {1, 0, -2}), (Floats{1}));
  EXPECT_EQ(run(fork, {0, 4, 0}), (Floats{3}));
  EXPECT_EQ(state_of(executor, "a"), (Floats{2, 1, 0}));
  EXPECT_EQ(state_of(fork, "a"), (Floats{1, 5, 2}));
}

}  // namespace
}  // namespace tenon
