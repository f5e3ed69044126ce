#include "base/error.h"
#include "driver/compile.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "program/text.h"
#include "program/verify.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

namespace tenon::text_test {
namespace {

// Kernels with versions, an operator with attributes, control flow, text constants, data-dependent
// symbols.
constexpr const char* kNet = R"(graph net (x: f32[S, 1, 4], take_first: bool[], words: string[2]) {
  zeros = constant f32[1, 4] splat 0
  weight = constant f32[4, 4] normal(seed = 3, mean = 0.0, deviation = 0.4)
  last, ys = scan(zeros, x, weight) {state_count = 1} body = graph step (h: f32[1, 4], part: f32[1, 4], w: f32[4, 4]) {
    p = matmul(h, w)
    s = add(p, part)
    next = tanh(s)
    return next, next
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
  hello = constant string[2] ["a \"quoted\" word", "tab\t"]
  greeting = string_concat(hello, words)
  return ys, chosen, doubled, greeting
}
)";

Program program_of(const char* text) {
  codegen::CompileOptions options = driver::cpu_options("x86-64-v3");
  options.specialised_shapes.push_back({{"S", Dim(7)}});
  return codegen::compile(parse_graph(text, all_ops()), options).program;
}

TEST(ProgramText, RoundTrip) {
  const Program program = program_of(kNet);
  const std::string text = to_string(program);
  Program read = parse_program_text(text);
  EXPECT_EQ(to_string(read), text);
  read.constants = program.constants;
  EXPECT_NO_THROW(verify(read));
  EXPECT_EQ(read.steps.size(), program.steps.size());
  EXPECT_EQ(read.operators.size(), program.operators.size());
  ASSERT_FALSE(program.operators.empty());
  for (std::size_t k = 0; k < program.operators.size(); ++k) {
    EXPECT_EQ(read.operators[k].attributes, program.operators[k].attributes) << k;
  }
  for (std::size_t k = 0; k < program.buffers.size(); ++k)
    EXPECT_EQ(read.buffers[k].dims, program.buffers[k].dims) << k;
}

TEST(ProgramText, RefusesBadTextWithItsPosition) {
  const std::string text = to_string(program_of(kNet));
  for (std::size_t size = 0; size + 2 < text.size(); size += 97) {
    EXPECT_THROW(parse_program_text(text.substr(0, size)), Error) << size;
  }
  const auto refusal = [&](const std::string& from, const std::string& to) {
    std::string altered = text;
    altered.replace(altered.find(from), from.size(), to);
    return error_summary([&] { parse_program_text(altered); });
  };
  EXPECT_EQ(refusal("%1 ", "%7 "), "numbers go up: 1 comes next");
  EXPECT_EQ(refusal("step 0 ", "step 9 "), "numbers go up: 0 comes next");
  EXPECT_EQ(refusal("input 0", "pocket 0"), "expected one of a few words");
  EXPECT_EQ(refusal("inputs (", "inputs %"), "expected '('");
  EXPECT_EQ(refusal("constants ", "nonsense "), "expected 'constants'");
}

TEST(PlanText, RoundTrip) {
  const Program program = program_of(R"(graph (x: f32[64, 64], w: f32[64, 64]) {
  r = exp(x)
  h = matmul(r, w)
  y = matmul(h, r)
  return y
}
)");
  const ArenaText plan = arena_text(program);
  EXPECT_EQ(plan.bytes, program.arena_bytes);
  EXPECT_EQ(plan.lines.size(), 2u);
  EXPECT_EQ(parse_plan_text(plan_text(program)), plan);
  EXPECT_EQ(parse_plan_text(plan_text(program_of(kNet))), arena_text(program_of(kNet)));
  EXPECT_EQ(error_summary([] {
              parse_plan_text("plan of 64 bytes {\n  steps 0 to 1: bytes 0 to 128 \"a\"\n}\n");
            }),
            "a buffer outside the plan");
  EXPECT_EQ(error_summary([] { parse_plan_text("plan of 64 bytes {\n"); }), "expected 'steps'");
}

}  // namespace
}  // namespace tenon::text_test
