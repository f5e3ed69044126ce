#pragma once

#include "codegen/compile.h"
#include "driver/compile.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace tenon {

inline double largest_difference(const Tensor& a, const Tensor& b) {
  double largest = 0;
  for (std::int64_t k = 0; k < a.size(); ++k) {
    const double difference = std::abs(a.real_at(k) - b.real_at(k));
    if (std::isnan(difference)) return INFINITY;
    largest = std::max(largest, difference);
  }
  return largest;
}

/// Compiles without passes and runs on 1, 2, 3 and 7 threads: bitwise equal, and close to the
/// reference.
inline void expect_same(const std::string& text, double tolerance = 1e-5) {
  const Graph graph = parse_graph(text, all_ops());
  const std::vector<Datum> inputs = models::random_inputs(graph, 5);
  const std::vector<Datum> expected = reference::evaluate(graph, inputs);
  const Program program = codegen::compile(graph, driver::cpu_options()).program;
  std::vector<Datum> first;
  for (const int threads : {1, 2, 3, 7}) {
    CompiledModel model(program, threads);
    const std::vector<Datum> outputs = model.run(inputs);
    ASSERT_EQ(outputs.size(), expected.size());
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      EXPECT_LE(largest_difference(outputs[k].tensor(), expected[k].tensor()), tolerance) << text;
      if (threads > 1) {
        EXPECT_TRUE(identical(outputs[k].tensor(), first[k].tensor())) << text;
      }
    }
    if (threads == 1) first = outputs;
  }
}

}  // namespace tenon
