#include "base/error.h"
#include "codegen/cpu/packed_in_run.h"
#include "driver/compile.h"
#include "driver/compiled.h"
#include "driver/inputs.h"
#include "ir/text.h"
#include "ops/registry.h"
#include "reference/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tenon::packed_in_run_test {
namespace {

// The result and the number of steps that compute it.
std::size_t steps_of(const std::string& text) {
  const Graph graph = parse_graph(text, all_ops());
  const std::vector<Datum> inputs = random_inputs(graph, 5, {});
  const Tensor expected = reference::evaluate(graph, inputs).front().tensor();
  Tensor first;
  std::size_t steps = 0;
  for (const int threads : {1, 2, 3}) {
    CompiledModel model(codegen::compile(graph, cpu_options()), threads);
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

// Rows of b lie 32 KiB apart and many tiles go down them: it is packed, then multiplied.
TEST(PackedInRun, ALargeOperandWhoseRowsLiePagesApart) {
  EXPECT_EQ(steps_of(product(64, 128, 8192)), 2U);
}

TEST(PackedInRun, NothingWhereRowsLieOtherwiseOrAreFew) {
  EXPECT_EQ(steps_of(product(64, 128, 8208)), 1U);
  EXPECT_EQ(steps_of(product(8, 128, 8192)), 1U);
}

}  // namespace
}  // namespace tenon::packed_in_run_test
