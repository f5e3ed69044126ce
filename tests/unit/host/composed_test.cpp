#include "host/composed.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "driver/compile.h"
#include "driver/compare.h"
#include "driver/compiled.h"
#include "ir/text.h"
#include "ops/registry.h"
#include "program/file.h"
#include "program/routine_check.h"
#include "reference/evaluate.h"

namespace tenon {
namespace {

using Kind = Routine::Step::Kind;

// A recurrent step over a sequence, then a choice, then extents that the data decides.
constexpr const char* kMixed = R"(graph net (x: f32[S, 1, 4], take_first: bool[]) {
  zeros = constant f32[1, 4] splat 0
  weight = constant f32[4, 4] normal(seed = 3, mean = 0.0, deviation = 0.4)
  scaled = mul(x, x)
  last, ys = scan(zeros, scaled, weight) {state_count = 1} body = graph step (h: f32[1, 4], part: f32[1, 4], w: f32[4, 4]) {
    p = matmul(h, w)
    s = add(p, part)
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

Tensor ramp(Shape shape) {
  Tensor x(DType::F32, std::move(shape));
  for (std::int64_t k = 0; k < x.size(); ++k) x.set_real(k, 0.3 * static_cast<double>(k % 5) - 0.4);
  return x;
}

Tensor truth(bool value) { return Tensor::of<int>(DType::Bool, {}, {value ? 1 : 0}); }

void expect_reference(const Graph& graph, CompiledModel& model, const std::vector<Datum>& inputs) {
  const std::vector<Datum> expected = reference::evaluate(graph, inputs), actual = model.run(inputs);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t k = 0; k < actual.size(); ++k) {
    EXPECT_EQ(actual[k].type(), expected[k].type());
    EXPECT_TRUE(compare(actual[k], expected[k], {1e-5, 1e-6}).is_equal) << k;
  }
}

class Composed : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "composed_test.tnn";
    graph_ = parse_graph(kMixed, all_ops());
    program_ = codegen::compile(graph_, cpu_options());
    write_program(program_, path_);
    std::ifstream stream(path_, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    bytes_ = std::move(text).str();
  }
  void TearDown() override { std::remove(path_.c_str()); }

  std::string path_, bytes_;
  Graph graph_;
  Program program_;
};

TEST_F(Composed, RunsControlFlowAndWhatDataDecides) {
  CompiledModel model(program_, 2);
  for (const std::int64_t steps : {5, 1, 0, 8, 8}) {
    for (const bool takes_first : {true, false}) expect_reference(graph_, model, {ramp({steps, 1, 4}), truth(takes_first)});
  }
}

TEST_F(Composed, RunsTheSameFromAFile) {
  CompiledModel model(read_program(path_), 1);
  expect_reference(graph_, model, {ramp({6, 1, 4}), truth(true)});
}

TEST_F(Composed, RecurrentKernelsRunInALoopWithTheirConstants) {
  std::size_t scans = 0;
  for (const Routine::Step& step : program_.routine.steps) {
    if (step.kind != Kind::Scan) continue;
    ++scans;
    EXPECT_EQ(step.operands.size(), 2u);  // the weight is a constant of the part
    EXPECT_GE(program_.parts[step.part].constant_bytes, 4u * 4 * 4);
  }
  EXPECT_EQ(scans, 1u);
}

TEST(Partition, KernelsAloneStayOneList) {
  const Graph graph = parse_graph(
      "graph (x: f32[n, 4]) {\n  w = constant f32[4] splat 2\n  y = mul(x, w)\n  return y\n}\n", all_ops());
  EXPECT_FALSE(codegen::compile(graph, cpu_options()).is_composed());
}

TEST_F(Composed, OutputsOfARunOutliveTheNext) {
  CompiledModel model(program_, 1);
  const Tensor x = ramp({3, 1, 4});
  const std::vector<Datum> first = model.run({x, truth(true)});
  const Tensor before = first[0].tensor();
  const std::vector<double> kept = before.reals();
  model.run({Tensor(DType::F32, {3, 1, 4}), truth(true)});
  EXPECT_EQ(first[0].tensor().reals(), kept);
}

// Kernels that run once for each position count as often; a body's time is its own and not that of the `if`.
TEST_F(Composed, TellsWhereTheTimeGoes) {
  std::size_t scanned = 0;
  for (const Routine::Step& step : program_.routine.steps) {
    if (step.kind == Kind::Scan) scanned = step.part;
  }
  CompiledModel model(program_, 1);
  model.prepare({ramp({5, 1, 4}), truth(true)});
  const std::vector<StepTime> times = model.timed_steps(3);
  std::size_t at = 0;
  for (std::size_t part = 0; part < program_.parts.size(); ++part) {
    for (const Program::Step& step : program_.parts[part].steps) {
      ASSERT_LT(at, times.size());
      EXPECT_EQ(times[at].name, step.name);
      EXPECT_EQ(times[at].candidate, step.candidate);
      if (part == scanned) {
        EXPECT_GT(times[at].seconds, 0) << step.name;
        EXPECT_EQ(times[at].bytes, 3 * 5 * step.bytes) << step.name;
      }
      ++at;
    }
  }
  std::vector<std::string> operators;
  for (; at < times.size(); ++at) {
    EXPECT_EQ(times[at].candidate, "operators");
    EXPECT_GT(times[at].seconds, 0) << times[at].name;
    operators.push_back(times[at].name);
  }
  EXPECT_EQ(operators, (std::vector<std::string>{"places", "chosen"}));
  expect_reference(graph_, model, {ramp({5, 1, 4}), truth(false)});  // afterwards it runs as before
}

TEST_F(Composed, WrongInputsAreRefused) {
  CompiledModel model(program_, 1);
  EXPECT_THROW(model.run({ramp({2, 1, 5}), truth(true)}), Error);
  EXPECT_THROW(model.run({ramp({2, 1, 4}), ramp({})}), Error);
  EXPECT_THROW(model.run({ramp({2, 1, 4})}), Error);
}

TEST_F(Composed, FilesCutShortOrAlteredAreRefused) {
  const auto put = [&](const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; };
  for (std::size_t size = 0; size < bytes_.size(); size += 1 + bytes_.size() / 97) {
    put(bytes_.substr(0, size));
    EXPECT_THROW(read_program(path_), Error) << size;
  }
  const std::size_t checked = 8000;  // tables and code
  ASSERT_LT(checked, bytes_.size());
  for (std::size_t at = 0; at < checked; at += 37) {
    std::string altered = bytes_;
    altered[at] = static_cast<char>(altered[at] ^ 0x20);
    put(altered);
    EXPECT_THROW(read_program(path_), Error) << at;
  }
}

// Whoever writes a file can write its checksums too.
TEST_F(Composed, RoutinesThatDoNotHoldTogetherAreRefused) {
  const auto refuses = [&](auto alter) {
    Program program = program_;
    alter(program);
    write_program(program, path_);
    EXPECT_THROW(CompiledModel(read_program(path_), 1), Error);
  };
  refuses([](Program& p) { p.routine.slot_count = 0xffffffff; });
  refuses([](Program& p) { p.routine.slot_count = 1; });
  refuses([](Program& p) { p.routine.outputs[0] = 0xffffff; });
  refuses([](Program& p) { p.routine.inputs.pop_back(); });
  refuses([](Program& p) { std::swap(p.routine.steps.front(), p.routine.steps.back()); });
  refuses([](Program& p) { p.routine.steps.push_back(p.routine.steps.back()); });
  for (std::size_t k = 0; k < program_.routine.steps.size(); ++k) {
    refuses([&](Program& p) { p.routine.steps[k].operands.push_back(0); });
    refuses([&](Program& p) { p.routine.steps[k].results.pop_back(); });
    const Kind kind = program_.routine.steps[k].kind;
    if (kind == Kind::Operators) {
      refuses([&](Program& p) { p.routine.steps[k].graph = "graph (x: f32[2]) {"; });
      refuses([&](Program& p) { p.routine.steps[k].graph.clear(); });
    } else {
      refuses([&](Program& p) { p.routine.steps[k].part = 77; });
    }
    if (kind == Kind::Scan) {
      refuses([&](Program& p) { p.routine.steps[k].input_count = 0; });
      refuses([&](Program& p) { p.routine.steps[k].state_count = 0xffffffff; });
      refuses([&](Program& p) { p.routine.steps[k].input_is_reversed.clear(); });
    }
  }
  refuses([](Program& p) {
    Routine deep = p.routine;
    deep.steps.clear();
    for (int k = 0; k < 200; ++k) {
      Routine around;
      around.steps.emplace_back();
      around.steps.back().kind = Kind::Operators;
      around.steps.back().bodies.push_back(std::move(deep));
      deep = std::move(around);
    }
    p.routine.steps.push_back(std::move(deep.steps.front()));
  });
}

}  // namespace
}  // namespace tenon
