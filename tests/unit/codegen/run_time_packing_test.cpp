#include "base/error.h"
#include "codegen/cpu/run_time_packing.h"
#include "driver/compile.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "nests/parse.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"
#include "tuned_cpu.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tenon::run_time_packing_test {
namespace {

// Returns the number of steps that compute the result.
std::size_t steps_of(const std::string& text) {
  const Graph graph = parse_graph(text, all_ops());
  const std::vector<Datum> inputs = models::random_inputs(graph, 5, {});
  const Tensor expected = reference::evaluate(graph, inputs).front().tensor();
  Tensor first;
  std::size_t steps = 0;
  const Program program = codegen::compile(graph, testing::tuned_cpu()).program;
  for (const int threads : {1, 2, 3}) {
    CompiledModel model(program, threads);
    steps = model.program().steps.size();
    const Tensor actual = model.run(inputs).front().tensor();
    for (std::int64_t k = 0; k < actual.size(); ++k) {
      if (std::abs(actual.real_at(k) - expected.real_at(k)) > 1e-3) return 0;
    }
    if (threads == 1) first = actual;
    if (!identical(actual, first)) return 0;
  }
  return steps;
}

std::string product(int rows, int sum, int columns) {
  return concat("graph (a: f32[", rows, ", ", sum, "], b: f32[", sum, ", ", columns,
                "]) {\n  y = matmul(a, b)\n  return y\n}\n");
}

// The rows of b are 32 KiB apart and many tiles traverse them: a packed copy is made at run time.
TEST(RuntimePacking, PacksOperandsWithPageStrides) {
  EXPECT_EQ(steps_of(product(64, 128, 8192)), 2U);
}

TEST(RuntimePacking, RefusesOtherStridesAndFewRows) {
  EXPECT_EQ(steps_of(product(64, 128, 8208)), 1U);
  EXPECT_EQ(steps_of(product(8, 128, 8192)), 1U);
}

// A product with a transposed operand: its rows are read along columns with a stride of 4 KiB.
std::string transposed_gemm(int sum, int rows, int columns) {
  return concat("graph (a: f32[", sum, ", ", rows, "], b: f32[", sum, ", ", columns,
                "]) {\n  y = einsum(a, b) {equation = \"ki,kj->ij\"}\n  return y\n}\n");
}

// Rows with a stride of 4 KiB over a reduction of 1,024 map to 32 sets of L2.
TEST(RuntimePacking, PacksTransposedRowsOfLongReductions) {
  EXPECT_EQ(steps_of(transposed_gemm(1024, 1024, 256)), 2U);
}

TEST(RuntimePacking, RefusesShortReductionsFewColumnsAndCachedRows) {
  EXPECT_EQ(steps_of(transposed_gemm(128, 1024, 256)), 1U);
  EXPECT_EQ(steps_of(transposed_gemm(1024, 1024, 128)), 1U);
  EXPECT_EQ(steps_of(transposed_gemm(1024, 1040, 256)), 1U);
  EXPECT_EQ(steps_of(transposed_gemm(1024, 1028, 256)), 1U);  // partial register tiles
}

// Packing does not change the order of accumulation.
TEST(RuntimePacking, IsBitIdentical) {
  const Graph graph = parse_graph(transposed_gemm(1024, 1024, 256), all_ops());
  const std::vector<Datum> inputs = models::random_inputs(graph, 5, {});
  const Tensor &a = inputs[0].tensor(), &b = inputs[1].tensor();
  const Tensor y = CompiledModel(codegen::compile(graph, testing::tuned_cpu()).program, 2)
                       .run(inputs)
                       .front()
                       .tensor();
  for (std::int64_t row = 0; row < 1024; row += 93) {
    for (std::int64_t column = 0; column < 256; ++column) {
      float sum = 0;
      for (std::int64_t k = 0; k < 1024; ++k)
        sum = std::fma(static_cast<float>(a.real_at(k * 1024 + row)),
                       static_cast<float>(b.real_at(k * 256 + column)), sum);
      ASSERT_EQ(static_cast<float>(y.real_at(row * 256 + column)), sum) << row << " " << column;
    }
  }
}

TEST(RuntimePacking, PackedOrderOfRowTiles) {
  nests::LoopNest nest =
      nests::parse_nest(R"(kernel k (out y: f32[1024, 256], a: f32[1024, 1024], b: f32[1024, 256]) {
  for i in 0..1024 {
    for j in 0..256 {
      t0 = 0.0
      for r in 0..1024 carried {
        t0 = sum(t0, (a[r, i] * b[r, j]))
      }
      y[i, j] = t0
    }
  }
})");
  const TargetFacts zen4 = cpu_facts("zen4");
  std::vector<bool> may_pack(3, false);
  const codegen::cpu::TileShape shape{8, 32};
  ASSERT_EQ(codegen::cpu::rows_to_pack(nest, may_pack, shape, zen4), 1U);
  may_pack[1] = true;
  const auto packings = codegen::cpu::tile_contraction(nest, may_pack, shape, zen4);
  ASSERT_TRUE(packings && packings->size() == 1);
  EXPECT_EQ(packings->front().extents, (std::vector<std::int64_t>{128, 1024, 8}));
  EXPECT_EQ(to_string(nest),
            R"(kernel k (out y: f32[1024, 256], a: f32[128, 1024, 8], b: f32[1024, 256]) {
  for ito in 0..2 parallel {
    for jo in 0..8 parallel {
      for ji in 0..32 vector by 32 {
        for iti in 0..64 {
          for ii in 0..8 jam by 8 {
            t0 = 0.0
            for r in 0..1024 carried {
              t0 = sum(t0, (a[((ito * 64) + iti), r, ii] * b[r, ((jo * 32) + ji)]))
            }
            y[((((ito * 64) + iti) * 8) + ii), ((jo * 32) + ji)] = t0
          }
        }
      }
    }
  }
}
)");
}

}  // namespace
}  // namespace tenon::run_time_packing_test
