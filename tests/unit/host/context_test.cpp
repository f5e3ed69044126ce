#include "base/error.h"
#include "driver/compile.h"
#include "host/compiled.h"
#include "host/context.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "program/file.h"
#include "reference/evaluate.h"
#include "testing/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

namespace tenon::context_test {
namespace {

using Kind = Program::StepKind;

// A recurrent step over a sequence, then a branch, then data-dependent extents.
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
  const std::vector<Datum> expected = reference::evaluate(graph, inputs),
                           actual = model.run(inputs);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t k = 0; k < actual.size(); ++k) {
    EXPECT_EQ(actual[k].type(), expected[k].type());
    EXPECT_TRUE(testing::compare(actual[k], expected[k], {1e-5, 1e-6}).is_equal) << k;
  }
}

class HostSteps : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "host_context_test.tnn";
    graph_ = parse_graph(kMixed, all_ops());
    program_ = codegen::compile(graph_, driver::cpu_options()).program;
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

TEST_F(HostSteps, ControlFlowAndDataDependentExtents) {
  CompiledModel model(program_, 2);
  for (const std::int64_t steps : {5, 1, 0, 8, 8}) {
    for (const bool takes_first : {true, false})
      expect_reference(graph_, model, {ramp({steps, 1, 4}), truth(takes_first)});
  }
}

TEST_F(HostSteps, RunsFromAFile) {
  CompiledModel model(read_program(path_), 1);
  expect_reference(graph_, model, {ramp({6, 1, 4}), truth(true)});
}

// A recurrent layer is a loop of kernels that access values in place; its weights belong to the
// program.
TEST_F(HostSteps, RecurrentLoopsOwnTheirConstants) {
  ASSERT_EQ(program_.loops.size(), 1u);
  const LoopStep& loop = program_.loops.front();
  ASSERT_EQ(loop.carried.size(), 1u);
  EXPECT_TRUE(loop.carried[0].is_direct);
  ASSERT_EQ(loop.stacked.size(), 1u);
  EXPECT_TRUE(loop.stacked[0].is_direct);
  EXPECT_EQ(program_.buffers[loop.carried[0].spare].place, Program::BufferKind::Arena);
  EXPECT_GE(program_.constant_bytes, 4u * 4 * 4);
}

// Values with extents that are known before the run are planned in the arena, whether host steps or
// kernels access them.
TEST_F(HostSteps, PlansValuesOfKnownExtents) {
  for (const Program::Buffer& buffer : program_.buffers) {
    if (buffer.name == "scaled" || buffer.name == "last") {
      EXPECT_EQ(buffer.place, Program::BufferKind::Arena) << buffer.name;
    }
    if (buffer.name == "places") {
      EXPECT_EQ(buffer.place, Program::BufferKind::Slot) << buffer.name;
    }
    if (buffer.name == "ys" && buffer.dims.size() == 3) {
      EXPECT_EQ(buffer.place, Program::BufferKind::Output);
    }
  }
}

TEST(HostProgram, ContainsNoGraph) {
  const Graph graph = parse_graph(kMixed, all_ops());
  const std::string path = ::testing::TempDir() + "host_no_graph.tnn";
  write_program(codegen::compile(graph, driver::cpu_options()).program, path);
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  EXPECT_EQ(std::move(text).str().find("graph "), std::string::npos);
  std::remove(path.c_str());
}

TEST(HostProgram, KernelOnlyProgram) {
  const Graph graph = parse_graph(
      "graph (x: f32[n, 4]) {\n  w = constant f32[4] splat 2\n  y = mul(x, w)\n  return y\n}\n",
      all_ops());
  EXPECT_TRUE(codegen::compile(graph, driver::cpu_options()).program.is_kernel_only());
}

void expect_like_reference(const std::string& text, const std::vector<std::vector<Datum>>& runs) {
  const Graph graph = parse_graph(text, all_ops());
  CompiledModel model(codegen::compile(graph, driver::cpu_options()).program, 2);
  for (const std::vector<Datum>& inputs : runs) expect_reference(graph, model, inputs);
}

Tensor number(std::int64_t value) { return Tensor::of<std::int64_t>(DType::I64, {}, {value}); }

// The body's extents equal those around it under other names; a value is both carried and stacked;
// a scan in reverse along a later axis.
TEST(HostProgram, LoopsOfSymbolicLengthAndOtherAxes) {
  const std::string text = R"(graph net (x: f32[N, S, 4], h: f32[N, 4]) {
  last, ys, zs = scan(h, x) {state_count = 1, input_axes = [1], input_reverse = [1], output_reverse = [0, 1], output_axes = [0, 1]}
    body = graph step (a: f32[m, 4], part: f32[m, 4]) {
    next = add(a, part)
    z = mul(next, part)
    return next, next, z
  }
  twice = add(last, last)
  return ys, zs, twice
}
)";
  expect_like_reference(text, {{ramp({2, 3, 4}), ramp({2, 4})},
                               {ramp({1, 5, 4}), ramp({1, 4})},
                               {ramp({2, 0, 4}), ramp({2, 4})}});
}

// Iterates until a condition fails; a carried value that grows; a result of zero iterations.
TEST(HostProgram, ConditionalLoops) {
  const std::string text = R"(graph net (trips: i64[], goes: bool[], x: f32[2]) {
  limit = constant f32[] [20]
  last, grown, ys = loop(trips, goes, x, x, limit) {carried_count = 2}
    body = graph (i: i64[], c: bool[], a: f32[2], b: f32[k], most: f32[]) {
    next = add(a, a)
    longer = concat(b, next) {axis = 0}
    total = reduce_max(next) {axes = [0], keep_axes = false}
    more = less(total, most)
    return more, next, longer, next
  }
  return last, grown, ys
}
)";
  const Tensor x = Tensor::of<double>(DType::F32, {2}, {1.0, 1.5});
  expect_like_reference(text, {{number(9), truth(true), x},
                               {number(2), truth(true), x},
                               {number(0), truth(true), x},
                               {number(5), truth(false), x}});
}

// Sequences, branches with different extents, a branch inside a loop, outputs that are inputs.
TEST(HostProgram, SequencesAndBranches) {
  const std::string text = R"(graph net (x: f32[3, 2], c: bool[]) {
  none = sequence_empty() {dtype = f32}
  one = sequence_insert(none, x)
  square = mul(x, x)
  two = sequence_insert(one, square)
  sums = sequence_map(two) body = graph (item: f32[3, 2]) {
    s = exp(item)
    return s
  }
  all = concat_from_sequence(sums) {axis = 0}
  part = if(c, x, all) then = graph (a: f32[3, 2], b: f32[m, 2]) {
    r = relu(a)
    return r
  } else = graph (a: f32[3, 2], b: f32[m, 2]) {
    return b
  }
  y = neg(part)
  return y, two, x
}
)";
  expect_like_reference(
      text,
      {{ramp({3, 2}), truth(true)}, {ramp({3, 2}), truth(false)}, {ramp({3, 2}), truth(true)}});
}

// Only the body reads the second input: its extent is inferred in the outer graph as well.
TEST(HostProgram, BodiesCheckExtentsOfInputs) {
  const Graph graph = parse_graph(R"(graph g (parts: seq(f32[N]), x: f32[S]) {
  count = sequence_length(parts)
  none = sequence_empty()
  on = constant bool[] true
  all = loop(count, on, none, parts, x) {carried_count = 1} body = graph b (i: i64[], c: bool[], so_far: seq(?), p: seq(f32[N]), q: f32[S]) {
    part = sequence_at(p, i)
    y = add(part, q)
    more = sequence_insert(so_far, y)
    return c, more
  }
  return all
}
)",
                                  all_ops());
  CompiledModel model(codegen::compile(graph, driver::cpu_options()).program, 1);
  const Datum parts = Datum::sequence({Datum(ramp({5})), Datum(ramp({5}))});
  expect_reference(graph, model, {parts, ramp({5})});
  expect_reference(graph, model, {parts, ramp({1})});
  EXPECT_THROW(model.run({parts, ramp({4})}), Error);
  // Only the last element does not fit.
  EXPECT_THROW(model.run({Datum::sequence({Datum(ramp({5})), Datum(ramp({4}))}), ramp({5})}),
               Error);
  expect_reference(graph, model, {parts, ramp({5})});
}

TEST_F(HostSteps, OutputsOutliveTheNextRun) {
  CompiledModel model(program_, 1);
  const Tensor x = ramp({3, 1, 4});
  const std::vector<Datum> first = model.run({x, truth(true)});
  const Tensor before = first[0].tensor();
  const std::vector<double> kept = before.reals();
  model.run({Tensor(DType::F32, {3, 1, 4}), truth(true)});
  EXPECT_EQ(first[0].tensor().reals(), kept);
}

// Kernels that run once per iteration are counted per iteration; the time of a body is not part of
// its `if`.
TEST_F(HostSteps, CountsStepsOfBodies) {
  CompiledModel model(program_, 1);
  model.prepare({ramp({5, 1, 4}), truth(true)});
  const std::vector<StepTime> times = model.timed_steps(3);
  ASSERT_EQ(times.size(), program_.steps.size());
  std::size_t at = 0;
  const std::uint32_t loop_end = program_.loops[0].end;
  for (std::uint32_t k = 0; k < program_.steps.size(); ++k) {
    const Program::Step& step = program_.steps[k];
    if (step.kind != Kind::Kernel) continue;
    EXPECT_EQ(times[at].name, step.name);
    EXPECT_EQ(times[at].candidate, step.candidate);
    const bool is_in_loop = k < loop_end && program_.steps[k].value != "scaled";
    if (is_in_loop) {
      EXPECT_GT(times[at].seconds, 0) << step.name;
      EXPECT_EQ(times[at].bytes, 3 * 5 * step.bytes) << step.name;
    }
    ++at;
  }
  std::map<std::string, std::string> others;
  for (; at < times.size(); ++at) {
    EXPECT_GT(times[at].seconds, 0) << times[at].name;
    others[times[at].name] = times[at].candidate;
  }
  EXPECT_EQ(others,
            (std::map<std::string, std::string>{
                {"scan last", "loop"}, {"if chosen", "branch"}, {"nonzero places", "operators"}}));
  expect_reference(graph_, model, {ramp({5, 1, 4}), truth(false)});  // a later run is unaffected
}

TEST_F(HostSteps, RefusesWrongInputs) {
  CompiledModel model(program_, 1);
  EXPECT_THROW(model.run({ramp({2, 1, 5}), truth(true)}), Error);
  EXPECT_THROW(model.run({ramp({2, 1, 4}), ramp({})}), Error);
  EXPECT_THROW(model.run({ramp({2, 1, 4})}), Error);
}

TEST_F(HostSteps, RefusesTruncatedAndAlteredFiles) {
  const auto put = [&](const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
  };
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

// Checksums do not authenticate a file: a modified program may have valid ones.
TEST_F(HostSteps, RefusesInconsistentPrograms) {
  int count = 0;
  const auto refuses = [&](auto alter) {
    Program program = program_;
    alter(program);
    for (Program::Step& step : program.steps) {
      if (step.kind != Kind::Kernel && step.detail < 1) step.buffers = buffers_of(program, step);
    }
    write_program(program, path_);
    ++count;
    EXPECT_THROW(CompiledModel(read_program(path_), 1), Error) << count;
  };
  refuses([](Program& p) { p.outputs[2] = 0xffffff; });
  refuses([](Program& p) { p.inputs.pop_back(); });
  refuses([](Program& p) { std::swap(p.steps.front(), p.steps.back()); });
  refuses([](Program& p) { p.steps.pop_back(); });
  refuses([](Program& p) { p.loops[0].end = 0; });
  refuses([](Program& p) { p.loops[0].end = 1000; });
  refuses([](Program& p) { p.loops[0].carried[0].initial = p.outputs[2]; });
  refuses([](Program& p) { p.loops[0].carried[0].in = p.inputs[0]; });
  refuses([](Program& p) { p.loops[0].carried[0].spare = p.inputs[0]; });
  refuses([](Program& p) { p.loops[0].stacked[0].result = p.inputs[0]; });
  refuses([](Program& p) { p.loops[0].scanned[0].in = 0xfffffe; });
  refuses([](Program& p) { p.loops[0].condition = p.inputs[1]; });
  refuses([](Program& p) { p.branches[0].then_end = 0; });
  refuses([](Program& p) { p.branches[0].else_end = p.branches[0].then_end - 1; });
  refuses([](Program& p) { p.branches[0].condition = p.outputs[2]; });
  refuses([](Program& p) { p.branches[0].results[0].result = p.inputs[0]; });
  refuses([](Program& p) { p.operators[0].op = "frobnicate"; });
  refuses([](Program& p) { p.operators[0].op = "if"; });
  refuses([](Program& p) { p.operators[0].operands.clear(); });
  refuses([](Program& p) { p.operators[0].operands.push_back(0); });
  refuses([](Program& p) { p.operators[0].results.push_back(p.operators[0].results[0]); });
  refuses([](Program& p) { p.operators[0].results = {p.inputs[0]}; });
  refuses([](Program& p) { p.operators[0].layouts = {"NCHW", "nonsense"}; });
  refuses([](Program& p) {
    p.operators[0].attributes.push_back(
        {"axis", ProgramAttribute::Kind::Integer, {Extent(1)}, {}, {}, {}});
  });
  refuses([](Program& p) {
    for (Program::Symbol& symbol : p.symbols) symbol.buffer = kNoBuffer;
  });
  refuses([](Program& p) {
    for (Program::Buffer& buffer : p.buffers) {
      if (buffer.place == Program::BufferKind::Slot) buffer.place = Program::BufferKind::Arena;
    }
  });
  refuses([](Program& p) {
    for (Program::Buffer& buffer : p.buffers) {
      if (buffer.place == Program::BufferKind::Slot)
        buffer = {"", "f32", 4, {1}, Program::BufferKind::View, 0xffffff};
    }
  });
}

// Loops nested deeper than any stack allows.
// Tables may be arbitrary under a valid checksum. A program of host steps has no code, so that an
// accepted one can be run.
TEST(HostProgram, SealedMutationsRunOrAreRefused) {
  const Graph graph = parse_graph(R"(graph (x: f32[N, 4], n: i64[], c: bool[]) {
  places = nonzero(x)
  doubled = identity(places)
  parts = split_to_sequence(x) {axis = 0}
  one = constant i64[] 0
  row = sequence_at(parts, one)
  values, indices = top_k(x) {k = 2}
  last, all = loop(n, values = x) {carried_count = 1} body = graph (i: i64[], go: bool[], v: f32[N, 4]) {
    s, order = top_k(v) {k = 4}
    return go, s, order
  }
  chosen = if(c, x) then = graph (a: f32[N, 4]) {
    u, k = top_k(a) {k = 1}
    return u
  } else = graph (a: f32[N, 4]) {
    u, k = top_k(a) {k = 3}
    return u
  }
  return doubled, row, values, last, all, chosen
}
)",
                                  all_ops());
  const Program program = driver::compile_model(graph, {}).program;
  ASSERT_TRUE(std::ranges::none_of(program.steps,
                                   [](const auto& step) { return step.kind == Kind::Kernel; }));
  std::ostringstream head, constants;
  write_program(program, head, constants);
  const std::string tables = head.str(), rest = constants.str();
  const std::vector<Datum> inputs = {ramp({3, 4}), Tensor::of<std::int64_t>(DType::I64, {}, {2}),
                                     truth(true)};
  constexpr std::size_t kHeader = 48;
  std::uint64_t table_bytes = 0;
  std::memcpy(&table_bytes, tables.data() + 8, sizeof(table_bytes));
  std::mt19937 random(5);
  int accepted = 0, refused = 0;
  for (int round = 0; round < 6000; ++round) {
    std::string altered = tables;
    for (std::size_t change = 1 + random() % 3; change > 0; --change) {
      const std::size_t at = kHeader + random() % (table_bytes - 8);
      const std::uint64_t extremes[] = {0, 1, 2, 3, 4, 7, 255, 1ULL << 31, 1ULL << 62, ~0ULL};
      const std::uint64_t value =
          random() % 2 == 0 ? random() % 32 : extremes[random() % std::size(extremes)];
      std::memcpy(altered.data() + at / 8 * 8, &value, 8);
    }
    altered += rest;
    seal_program(std::as_writable_bytes(std::span(altered)));
    try {
      CompiledModel context(parse_program(std::as_bytes(std::span(altered)), nullptr), 1);
      int bodies_left = 1000;
      context.executor().set_body_callback([&] {
        if (--bodies_left < 0) throw Error("an endless loop");
      });
      context.run(inputs);
      ++accepted;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 1000);
}

TEST_F(HostSteps, RefusesDeepNesting) {
  Program program = program_;
  const Program::Step loop = *std::ranges::find(program.steps, Kind::Loop, &Program::Step::kind);
  program.steps.clear();
  program.loops.clear();
  for (std::uint32_t k = 0; k < 200; ++k) {
    program.steps.push_back(loop);
    program.steps.back().detail = k;
    program.loops.emplace_back();
    program.loops.back().end = 200;
  }
  write_program(program, path_);
  EXPECT_THROW(read_program(path_), Error);
}

// The extents of a branch that is not taken may be negative, or too large for any memory.
TEST(HostBranches, BranchesThatAreNotTakenNeedNoShapes) {
  const Graph graph = parse_graph(R"(graph (x: f32[1, 1, N], w: f32[1, 1, 3], c: bool[]) {
  y = if(c, x, w) then = graph (a: f32[1, 1, N], b: f32[1, 1, 3]) {
    r = conv(a, b)
    return r
  } else = graph (a: f32[1, 1, N], b: f32[1, 1, 3]) {
    r = relu(a)
    return r
  }
  z = if(c, x) then = graph (a: f32[1, 1, N]) {
    r = tile(a) {repeats = [10000000, 10000000, 1]}
    s = neg(r)
    t = reduce_sum(s)
    return t
  } else = graph (a: f32[1, 1, N]) {
    t = reduce_sum(a)
    return t
  }
  return y, z
}
)",
                                  all_ops());
  CompiledModel model(driver::compile_model(graph, {}).program, 1);
  expect_reference(graph, model, {ramp({1, 1, 1}), ramp({1, 1, 3}), truth(false)});
  EXPECT_THROW(model.run({ramp({1, 1, 1}), ramp({1, 1, 3}), truth(true)}), Error);
  expect_reference(graph, model, {ramp({1, 1, 2}), ramp({1, 1, 3}), truth(false)});
}

// Outputs that equal an input, a constant or each other, of any type, have their own names.
TEST(HostNames, OutputsEqualToOtherValuesKeepTheirNames) {
  const Graph graph = parse_graph(R"(graph (x: f32[2, 2], s: seq(f32[N]), t: string[2]) {
  c = constant i64[2] [1, 2]
  places = nonzero(x)
  y = identity(x)
  z = identity(y)
  k = identity(c)
  again = identity(places)
  r = identity(s)
  u = identity(t)
  return places, y, z, k, again, r, u, x
}
)",
                                  all_ops());
  CompiledModel model(driver::compile_model(graph, {}).program, 1);
  const Program& program = model.program();
  ASSERT_EQ(program.outputs.size(), graph.outputs().size());
  for (std::size_t k = 0; k < graph.outputs().size(); ++k)
    EXPECT_EQ(program.buffers[program.outputs[k]].name, graph.value(graph.outputs()[k]).name);
  const Datum list = Datum::sequence({Tensor::of<float>(DType::F32, {2}, {1, 2})});
  expect_reference(graph, model, {ramp({2, 2}), list, Tensor::of_strings({2}, {"one", "two"})});
}

}  // namespace
}  // namespace tenon::context_test
