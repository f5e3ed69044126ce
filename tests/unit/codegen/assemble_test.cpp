#include "base/error.h"
#include "codegen/assemble.h"
#include "codegen/select.h"
#include "driver/compile.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "ops/definition/registry.h"
#include "program/verify.h"
#include "reference/evaluate.h"

#include <gtest/gtest.h>

namespace tenon::assemble_test {
namespace {

// Compiles the graph without passes and expects an arena of `bytes` and the reference's results on
// several thread counts.
void expect_arena(const std::string& text, std::uint64_t bytes) {
  const Graph graph = parse_graph(text, all_ops());
  const std::vector<Datum> inputs = models::random_inputs(graph, 5);
  const std::vector<Datum> expected = reference::evaluate(graph, inputs);
  const Program program = codegen::compile(graph, driver::cpu_options()).program;
  verify(program);
  EXPECT_EQ(program.arena_bytes, bytes) << text;
  for (const int threads : {1, 2, 7}) {
    const std::vector<Datum> actual = CompiledModel(program, threads).run(inputs);
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t k = 0; k < actual.size(); ++k) {
      const Tensor &mine = actual[k].tensor(), &right = expected[k].tensor();
      for (std::int64_t j = 0; j < mine.size(); ++j)
        ASSERT_NEAR(mine.real_at(j), right.real_at(j), 1e-4) << text;
    }
  }
}

// Each node overwrites its operand: one buffer serves the whole chain.
TEST(Assemble, ElementwiseInPlace) {
  expect_arena(R"(graph (x: f32[64, 64]) {
  a = exp(x)
  b = neg(a)
  c = tanh(b)
  y = transpose(c)
  return y
}
)",
               64 * 64 * 4);
}

TEST(Assemble, KeepsOperandsWithLaterReaders) {
  expect_arena(R"(graph (x: f32[64, 64]) {
  a = exp(x)
  b = neg(a)
  c = add(b, a)
  y = transpose(c)
  return y
}
)",
               2 * 64 * 64 * 4);
}

// The sum overwrites the residual, never the operands of the product.
TEST(Assemble, GemmInPlaceOfItsResidual) {
  expect_arena(R"(graph (x: f32[64, 64], w: f32[64, 64]) {
  r = exp(x)
  h = tanh(x)
  m = fused(h, w, r) group = graph (h: f32[64, 64], w: f32[64, 64], r: f32[64, 64]) {
    p = matmul(h, w)
    m = add(p, r)
    return m
  }
  y = transpose(m)
  return y
}
)",
               2 * 64 * 64 * 4);
}

TEST(Assemble, NotInPlaceForRowsAndOtherSizes) {
  expect_arena(R"(graph (x: f32[64, 64]) {
  a = exp(x)
  b = softmax(a) {axis = 0}
  y = transpose(b)
  return y
}
)",
               2 * 64 * 64 * 4);
  // The same number of elements with half the bytes.
  expect_arena(R"(graph (x: f32[64, 64]) {
  a = exp(x)
  b = cast(a) {to = f16}
  y = transpose(b)
  return y
}
)",
               64 * 64 * 4 + 64 * 64 * 2);
}

TEST(Assemble, StepsInTaskOrder) {
  const Graph graph = parse_graph(
      "graph (x: f32[n, 40], w: f32[40, 8]) {\n  h = matmul(x, w)\n  y = softmax(h) {axis = 0}\n  "
      "return y\n}\n",
      all_ops());
  const codegen::CompileOptions options = driver::cpu_options("x86-64-v3");
  const TaskList tasks = codegen::select(graph, options).tasks;
  const Program program = codegen::assemble(tasks, options.target->program_target({}));
  std::size_t calls = 0;
  for (const TaskList::Task& task : tasks.tasks) {
    for (const TaskList::Alternative& alternative : task.alternatives) {
      for (const TaskList::Call& call : alternative.calls) {
        EXPECT_EQ(program.steps.at(calls).buffers, call.buffers);
        EXPECT_EQ(program.steps.at(calls++).name, task.name);
      }
    }
  }
  EXPECT_EQ(program.steps.size(), calls);
  EXPECT_FALSE(program.is_arena_planned);
}

}  // namespace
}  // namespace tenon::assemble_test
