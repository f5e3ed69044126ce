// Int4 matrix-vector products against the reference of the original graph.
#include "base/text.h"
#include "driver/compile.h"
#include "driver/pipeline.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::nibble_rows_test {
namespace {

struct Case {
  std::int64_t terms, columns;
  std::string dtype, scale, zero, attrs;  // shapes of scale and zero point; empty zero: symmetric
};

std::string text_of(const Case& of) {
  const std::string most = of.dtype == "i4" ? "low = -8, high = 7" : "low = 0, high = 15";
  std::string text =
      concat("graph (x: f32[1, ", of.terms, "]) {\n  w = constant ", of.dtype, "[", of.terms, ", ",
             of.columns, "] uniform(seed = 5, ", most, ")\n  t = constant f32", of.scale,
             " uniform(seed = 6, low = 0.01, high = 0.1)\n");
  if (!of.zero.empty())
    text += concat("  z = constant ", of.dtype, of.zero, " uniform(seed = 7, ", most, ")\n");
  return text + concat("  d = dequantize_linear(w, t", of.zero.empty() ? "" : ", z", ")", of.attrs,
                       "\n  y = matmul(x, d)\n  return y\n}");
}

std::vector<Tensor> results(const Graph& graph, const std::vector<Datum>& inputs) {
  std::vector<Tensor> list = {
      reference::evaluate(driver::run_pipeline(graph, {}), inputs)[0].tensor()};
  for (const char* cpu : {"x86-64-v3", "native"})
    list.push_back(CompiledModel(driver::compile_graph(graph, driver::parse_target(cpu)), 2)
                       .run(inputs)[0]
                       .tensor());
  return list;
}

TEST(NibbleRowsTest, MatchesWideWeights) {
  const std::vector<Case> cases = {
      {768, 768, "i4", "[24, 768]", "", " {axis = 0, block_size = 32}"},
      {768, 1000, "u4", "[24, 1000]", "[24, 1000]", " {axis = 0, block_size = 32}"},
      {640, 1024, "i4", "[32, 1024]", "[32, 1024]", " {axis = 0, block_size = 20}"},
      {720, 800, "i4", "[20, 800]", "", " {axis = 0, block_size = 36}"},
      {777, 700, "u4", "[111, 700]", "", " {axis = 0, block_size = 7}"},
      {1024, 545, "i4", "[545]", "", " {axis = 1}"},
      {1024, 544, "u4", "[]", "[]", ""},
  };
  for (const Case& of : cases) {
    const std::string text = text_of(of);
    const Graph graph = parse_graph(text, all_ops());
    const std::vector<Datum> inputs = models::random_inputs(graph, 3);
    EXPECT_NE(print(driver::run_pipeline(graph, {})).find("dp4a"), std::string::npos) << text;
    const Tensor expected = reference::evaluate(graph, inputs)[0].tensor();
    double largest = 0;
    for (std::int64_t k = 0; k < expected.size(); ++k)
      largest = std::max(largest, std::abs(expected.real_at(k)));
    for (const Tensor& made : results(graph, inputs)) {
      ASSERT_EQ(made.shape(), expected.shape());
      for (std::int64_t k = 0; k < expected.size(); ++k)
        ASSERT_NEAR(made.real_at(k), expected.real_at(k), 2e-6 * largest) << text << "\nat " << k;
    }
  }
}

TEST(NibbleRowsTest, RowsOfZerosAndExtremes) {
  const Graph graph = parse_graph(
      text_of({768, 768, "i4", "[24, 768]", "", " {axis = 0, block_size = 32}"}), all_ops());
  for (const double value : {0.0, 1e-38, -3e30}) {
    Tensor row(DType::F32, {1, 768});
    row.set_real(5, value);
    const std::vector<Datum> inputs = {row};
    const Tensor expected = reference::evaluate(graph, inputs)[0].tensor();
    for (const Tensor& made : results(graph, inputs)) {
      for (std::int64_t k = 0; k < expected.size(); ++k)
        ASSERT_NEAR(made.real_at(k), expected.real_at(k),
                    1e-30 + 1e-6 * std::abs(expected.real_at(k)));
    }
  }
}

TEST(NibbleRowsTest, PropagatesNonFiniteValues) {
  const Graph graph = parse_graph(
      text_of({768, 768, "i4", "[24, 768]", "", " {axis = 0, block_size = 32}"}), all_ops());
  for (const double value :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    Tensor row(DType::F32, {1, 768});
    for (std::int64_t k = 0; k < 768; ++k) row.set_real(k, 1);
    row.set_real(5, value);
    for (const Tensor& made : results(graph, {row})) {
      for (std::int64_t k = 0; k < made.size(); ++k) ASSERT_FALSE(std::isfinite(made.real_at(k)));
    }
  }
}

}  // namespace
}  // namespace tenon::nibble_rows_test
