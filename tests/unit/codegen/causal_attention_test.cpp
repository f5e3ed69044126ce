// Causal attention on CPU: loops over keys end at the last visible key of a row tile.
#include "codegen/compile.h"
#include "driver/compile.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace tenon::causal_attention_test {
namespace {

std::string attention(int heads, int keys, const std::string& attributes) {
  return concat("graph (q: f32[1, ", heads, ", 256, 8], k: f32[1, ", heads, ", ", keys,
                ", 8], v: f32[1, ", heads, ", ", keys,
                ", 20]) {\n  y = attention(q, k, v) {causal = true", attributes,
                "}\n  return y\n}\n");
}

TEST(CausalAttention, MatchesTheReferenceOnAnyThreads) {
  for (const std::string& text :
       {attention(1, 256, ""), attention(3, 256, ", scale = 0.3"),
        attention(1, 296, ", causal_offset = 40"), attention(2, 200, ", softcap = 2.0"),
        attention(1, 256, ", left_window = 30")}) {
    const Graph graph = parse_graph(text, all_ops());
    const std::vector<Datum> inputs = models::random_inputs(graph, 5);
    const Tensor expected = reference::evaluate(graph, inputs).front().tensor();
    Tensor first;
    for (const char* cpu : {"x86-64-v3", "native"}) {
      const Program program = codegen::compile(graph, driver::cpu_options(cpu)).program;
      for (const int threads : {1, 2, 3, 7}) {
        const Tensor y = CompiledModel(program, threads).run(inputs).front().tensor();
        for (std::int64_t k = 0; k < y.size(); ++k)
          ASSERT_NEAR(y.real_at(k), expected.real_at(k), 1e-5) << text;
        if (threads == 1) first = y;
        EXPECT_TRUE(identical(y, first)) << text;
      }
    }
  }
}

// The reference multiplies 0 by infinity there. A row that sees the value has the infinity in every
// implementation.
TEST(CausalAttention, SkipsMaskedInfinity) {
  const Graph graph = parse_graph(attention(1, 256, ""), all_ops());
  std::vector<Datum> inputs = models::random_inputs(graph, 5);
  Tensor values = inputs[2].tensor();
  values.set_real(255 * 20, std::numeric_limits<double>::infinity());
  inputs[2] = values;
  const Tensor y = CompiledModel(codegen::compile(graph, driver::cpu_options()).program, 1)
                       .run(inputs)
                       .front()
                       .tensor();
  EXPECT_TRUE(std::isfinite(y.real_at(0)));
  EXPECT_FALSE(std::isfinite(y.real_at(255 * 20)));
  EXPECT_TRUE(std::isfinite(y.real_at(255 * 20 + 1)));
}

}  // namespace
}  // namespace tenon::causal_attention_test
