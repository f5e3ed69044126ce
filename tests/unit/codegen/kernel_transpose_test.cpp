// In-register transposes of 8x8 squares in copies.
#include "base/error.h"
#include "codegen/compile.h"
#include "driver/compile.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"

#include <gtest/gtest.h>

namespace tenon::kernel_transpose_test {
namespace {

// Multiplies one row by a transposed operand. A 0/1 selection matrix as the other operand exposes
// every element of the packed copy in its new order.
void expect_transposed(int rows, int columns, const std::string& cpu) {
  const std::string text =
      concat("graph (x: f32[", rows, ", ", columns, "], w: f32[", columns, ", ", columns,
             "]) {\n  y = einsum(x, w) {equation = \"ik,jk->ij\"}\n  return y\n}\n");
  const Graph graph = parse_graph(text, all_ops());
  std::vector<Datum> inputs = models::random_inputs(graph, 3, {});
  Tensor ones(DType::F32, {rows, columns});
  for (std::int64_t k = 0; k < rows; ++k) ones.set_real(k * columns + k * 7 % columns, 1);
  inputs[0] = Datum(ones);
  const Tensor expected = reference::evaluate(graph, inputs).front().tensor();
  const Program program = codegen::compile(graph, driver::cpu_options(cpu)).program;
  for (const int threads : {1, 3}) {
    CompiledModel model(program, threads);
    EXPECT_TRUE(identical(model.run(inputs).front().tensor(), expected))
        << rows << " " << columns << " " << cpu;
  }
}

// A transpose of eight by eight takes 24 shuffles; loops without it have a few.
TEST(InRegisterTranspose, UsesShuffles) {
  const Graph graph = parse_graph(
      "graph (x: f32[64, 64], w: f32[64, 64]) {\n"
      "  y = einsum(x, w) {equation = \"ik,jk->ij\"}\n  return y\n}\n",
      all_ops());
  const std::string code = codegen::print_code(graph, driver::cpu_options("haswell"));
  const std::string shuffle = " shufflevector ";
  int count = 0;
  for (std::size_t at = code.find(shuffle); at != std::string::npos;
       at = code.find(shuffle, at + 1))
    ++count;
  EXPECT_GE(count, 24);
}

TEST(InRegisterTranspose, TransposesEveryElement) {
  for (const char* cpu : {"x86-64-v3", "native"}) {
    expect_transposed(64, 64, cpu);
    expect_transposed(40, 48, cpu);   // three squares in a row
    expect_transposed(48, 80, cpu);   // remainder of half a vector
    expect_transposed(36, 100, cpu);  // with scalar remainder
    expect_transposed(33, 256, cpu);
  }
}

}  // namespace
}  // namespace tenon::kernel_transpose_test
