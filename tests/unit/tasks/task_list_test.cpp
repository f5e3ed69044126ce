#include "base/error.h"
#include "codegen/select.h"
#include "driver/compile.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "tasks/task_list.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

#include <map>

namespace tenon::task_list_test {
namespace {

constexpr const char* kList = R"(tasks net {
  symbol n from 1 to 8 axis 0 of %0
  check at_most [n] [6] "slice" "node 'h' (slice), axis 0"
  %0 x: f32[n, 4] input 0
  %1 w: f32[4, 4] constant
  %2 w: f32[1, 4, 16] constant form "packed, limit 4" of %1
  %3 h: f32[n, 4] value
  %4 y: f32[n, 4] output 0
  kernel 0 h scratch [64*n]
  kernel 1 y scratch [0] threads 128 library "cublaslt" shared 4096 cluster 4 map 1 rows [2*n] extents [24, 7] pitches [32, 224] box [64, 4, 1] steps [1, 2, 1]
  inputs %0
  outputs %4
  task "matmul fc1" compute of h reads %0, %2 writes %3 {
    candidate "tiles 6x16" when n from 1 to 4 {
      call 0(%0, %2, %3) extents [n] items [n] flops 32.0 bytes 0.0
    }
    candidate "loops" when n from 5 to 8 {
      call 1(%0, %2, %3) extents [n, 2*n + 1] items [1] flops 32.0 bytes 0.0
    }
  }
  task y compute of y reads %3 writes %4 {
    candidate "loops" {
      call 1(%3, %4) extents [] items [2*n] flops 0.0 bytes 0.0
    }
    share %4 with %3
  }
}
)";

TEST(TaskList, TextRoundTrip) {
  const TaskList list = parse_tasks(kList);
  EXPECT_EQ(to_string(list), kList);
  EXPECT_NO_THROW(verify(list));
  ASSERT_EQ(list.tasks.size(), 2U);
  EXPECT_EQ(list.tasks[0].alternatives[1].when, (std::vector<TaskList::Guard>{{0, 5, 8}}));
  EXPECT_EQ(list.tasks[1].may_share.size(), 1U);
  EXPECT_EQ(list.buffers[2].form->source, 1U);
}

// With symbols, packed constants, padded copies, a product with a residual, an output that is a
// view.
constexpr const char* kNet = R"(graph net (x: f32[N, 20, 20, 16]@NHWC, z: f32[N, 8]) {
  w: f32[3, 3, 16, 16]@HWIO = constant f32[3, 3, 16, 16] normal(seed = 1, mean = 0.0, deviation = 0.1)
  c = conv(x, w) {pads = [1, 1, 1, 1]}
  r = relu(c)
  v = constant f32[8, 8] normal(seed = 2, mean = 0.0, deviation = 0.1)
  m = matmul(z, v)
  e = exp(m)
  s = reshape(e) {shape = [-1]}
  return r, e, s
}
)";

TEST(TaskList, NetworkRoundTripsAndVerifies) {
  const TaskList list =
      codegen::select(parse_graph(kNet, all_ops()), driver::cpu_options("x86-64-v3")).tasks;
  EXPECT_NO_THROW(verify(list));
  const std::string text = to_string(list);
  const TaskList read = parse_tasks(text);
  EXPECT_EQ(to_string(read), text);
  EXPECT_NO_THROW(verify(read));
  EXPECT_EQ(read.symbols, list.symbols);
  EXPECT_EQ(read.tasks.size(), list.tasks.size());
  EXPECT_EQ(list.tasks.back().kind, TaskList::Task::Kind::Copy);
}

// A host operator, a branch, and a loop that carries and stacks: one list, in which bodies follow
// their task.
constexpr const char* kMixed = R"(graph net (x: f32[S, 1, 4], take_first: bool[]) {
  zeros = constant f32[1, 4] splat 0
  last, ys = scan(zeros, x) {state_count = 1} body = graph step (h: f32[1, 4], part: f32[1, 4]) {
    s = add(h, part)
    next = tanh(s)
    y = neg(next)
    return next, y
  }
  chosen = if(take_first, last) then = graph (a: f32[1, 4]) {
    r = relu(a)
    return r
  } else = graph (a: f32[1, 4]) {
    r = exp(a)
    return r
  }
  places = nonzero(ys)
  doubled = add(places, places)
  return ys, chosen, doubled
}
)";

TEST(TaskList, ControlFlowRoundTripsAndVerifies) {
  const TaskList list =
      codegen::select(parse_graph(kMixed, all_ops()), driver::cpu_options("x86-64-v3")).tasks;
  EXPECT_NO_THROW(verify(list));
  const std::string text = to_string(list);
  const TaskList read = parse_tasks(text);
  EXPECT_EQ(to_string(read), text);
  EXPECT_NO_THROW(verify(read));
  std::map<TaskList::Task::Kind, int> kinds;
  for (const TaskList::Task& task : list.tasks) ++kinds[task.kind];
  EXPECT_EQ(kinds[TaskList::Task::Kind::Loop], 1) << text;
  EXPECT_EQ(kinds[TaskList::Task::Kind::Branch], 1) << text;
  EXPECT_EQ(kinds[TaskList::Task::Kind::Host], 1) << text;
  // A data-dependent extent defines a symbol, and later buffers are sized by it.
  EXPECT_NE(text.find("doubled: i64[3, "), std::string::npos) << text;
  EXPECT_NE(text.find("sized"), std::string::npos) << text;
}

TEST(TaskList, VerifierFindsInconsistentBodies) {
  const TaskList whole =
      codegen::select(parse_graph(kMixed, all_ops()), driver::cpu_options("x86-64-v3")).tasks;
  const auto broken = [&](const std::function<void(TaskList::Task&)>& change) {
    TaskList list = whole;
    for (TaskList::Task& task : list.tasks) change(task);
    EXPECT_THROW(verify(list), InternalError);
  };
  broken([](TaskList::Task& task) {
    if (task.loop) task.loop->end = 1000;
  });
  broken([](TaskList::Task& task) {
    if (task.branch) std::swap(task.branch->then_end, task.branch->else_end);
  });
  broken([](TaskList::Task& task) {
    if (task.loop)
      task.loop->carried[0].out = task.loop->stacked[0].result, task.loop->stacked.clear(),
      task.writes.clear();
  });
  broken([](TaskList::Task& task) {
    if (task.host) task.reads = {task.writes[0]};
  });
}

// Reading an empty buffer requires no producer.
TEST(TaskList, ReadsOfEmptyBuffersVerify) {
  const char* text =
      "graph (x: f16[1, 0, 1, 1]) {\n  a = sub(x, x)\n  y = pad(a) {pads = [0, 1, 0, 0, 0, 0, 1, "
      "1]}\n"
      "  return y\n}\n";
  const TaskList list =
      codegen::select(parse_graph(text, all_ops()), driver::cpu_options("x86-64-v3")).tasks;
  EXPECT_NO_THROW(verify(list));
}

TEST(TaskList, RefusesBadTextWithItsPosition) {
  const auto refusal = [](const std::string& from, const std::string& to) {
    std::string text = kList;
    text.replace(text.find(from), from.size(), to);
    return error_summary([&] { parse_tasks(text); });
  };
  EXPECT_EQ(refusal("%3 h: f32[n, 4] value", "%5 h: f32[n, 4] value"),
            "buffers are numbered in order: %3 comes next");
  EXPECT_EQ(refusal("reads %0, %2", "reads %0, %9"), "there is no buffer %9");
  EXPECT_EQ(refusal("call 0(", "call 7("), "there is no kernel 7");
  EXPECT_EQ(refusal("when n", "when k"), "there is no symbol k");
  EXPECT_EQ(refusal("[n, 4] value", "[n, 4] forever"),
            "expected input, output, constant, value or sized");
  EXPECT_EQ(refusal("\"matmul fc1\" compute", "\"matmul fc1\" guess"),
            "expected compute, host, copy, branch or loop");
  EXPECT_NE(refusal("outputs %4\n", "outputs %4\n  nonsense\n"), "no error");
  for (std::size_t size = 0; size + 2 < std::string(kList).size(); size += 7) {
    EXPECT_THROW(parse_tasks(std::string(kList).substr(0, size)), Error) << size;
  }
}

void expect_broken(const std::string& what, const std::function<void(TaskList&)>& change) {
  TaskList list = parse_tasks(kList);
  change(list);
  try {
    verify(list);
    FAIL() << "it holds together: " << what;
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
  }
}

TEST(TaskList, VerifierFindsInconsistentTasks) {
  expect_broken("what it reads is there",
                [](TaskList& list) { std::swap(list.tasks[0], list.tasks[1]); });
  expect_broken("an output is written", [](TaskList& list) { list.tasks.pop_back(); });
  expect_broken("it writes what can be written",
                [](TaskList& list) { list.tasks[0].writes.push_back(1); });
  expect_broken("it writes what can be written",
                [](TaskList& list) { list.tasks[0].writes.push_back(0); });
  expect_broken("a call uses what its task reads or writes",
                [](TaskList& list) { list.tasks[0].reads.pop_back(); });
  expect_broken("it calls a kernel that there is",
                [](TaskList& list) { list.tasks[0].alternatives[0].calls[0].kernel = 9; });
  expect_broken("a guard asks for values",
                [](TaskList& list) { list.tasks[0].alternatives[0].when[0].lo = 5; });
  expect_broken("a result shares memory with an operand",
                [](TaskList& list) { list.tasks[1].may_share[0].second = 1; });
  expect_broken("a form is made of a constant",
                [](TaskList& list) { list.buffers[2].form->source = 0; });
  expect_broken("a port is a buffer of its kind", [](TaskList& list) { list.outputs[0] = 3; });
}

}  // namespace
}  // namespace tenon::task_list_test
