// Data errors: the reference and the compiled program refuse the same inputs.
#include "base/error.h"
#include "driver/compile.h"
#include "driver/pipeline.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"
#include "testing/verify/agreement.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

#include <functional>

namespace tenon::refusals_test {
namespace {

struct Case {
  std::string name, graph;
  /// elements of the integer input
  std::vector<std::vector<std::int64_t>> taken, refused;
};

std::vector<Datum> inputs_of(const Graph& graph, const std::vector<std::int64_t>& integers) {
  std::vector<Datum> inputs;
  for (ValueId input : graph.inputs()) {
    const TensorType& type = graph.value(input).type.tensor();
    Tensor tensor(type.dtype, constants(type.dims));
    for (std::int64_t k = 0; k < tensor.size(); ++k) {
      if (is_integer(type.dtype)) {
        tensor.set_integer(k, integers.at(static_cast<std::size_t>(k)));
      } else {
        tensor.set_real(k, static_cast<double>(k) / 4);
      }
    }
    inputs.emplace_back(std::move(tensor));
  }
  return inputs;
}

bool takes(const std::function<void()>& run) {
  try {
    run();
    return true;
  } catch (const Error&) {
    return false;
  }
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"max_unpool",
       "graph (x: f32[1, 1, 2], at: i64[1, 1, 2]) { y = max_unpool(x, at) {kernel_shape = [2], "
       "strides = [2]} return y }",
       {{0, 3}, {2, 2}},
       {{0, 4}, {-1, 0}, {99, 1}}},
      {"rotary_embedding",
       "graph (x: f32[1, 1, 2, 4], c: f32[3, 2], s: f32[3, 2], p: i64[1, 2]) { y = "
       "rotary_embedding(x, c, s, p) return y }",
       {{0, 2}},
       {{0, 3}, {-1, 0}}},
      {"gather",
       "graph (x: f32[3, 2], at: i64[2]) { y = gather(x, at) return y }",
       {{0, 2}, {-3, -1}},
       {{0, 3}, {-4, 0}}},
      {"gather_elements",
       "graph (x: f32[2, 3], at: i64[2, 1]) { y = gather_elements(x, at) {axis = 1} return y }",
       {{2, 0}},
       {{3, 0}, {0, -4}}},
      {"scatter_nd",
       "graph (x: f32[4], at: i64[2, 1], updates: f32[2]) { y = scatter_nd(x, at, updates) return "
       "y }",
       {{0, 3}, {-4, 1}},
       {{0, 4}, {-5, 0}}},
      {"scatter_into_nothing",  // an update of an empty tensor fails regardless of readers
       "graph (x: f32[1, 0], at: i64[1, 2], updates: f32[1, 2]) { s = scatter_elements(x, at, "
       "updates) {axis = 1, reduction = add} y = relu(s) return y }",
       {},
       {{0, 0}, {1, 0}, {-1, 0}}},
      {"reverse_sequence",
       "graph (x: f32[3, 2], lengths: i64[2]) { y = reverse_sequence(x, lengths) return y }",
       {{3, 1}, {0, 2}},
       {{4, 1}}},
      {"roi_align",
       "graph (x: f32[2, 1, 3, 3], rois: f32[1, 4], at: i64[1]) { y = roi_align(x, rois, at) "
       "return y }",
       {{1}},
       {{2}, {-1}}},
      {"nll_loss",
       "graph (x: f32[2, 3], target: i64[2]) { y = nll_loss(x, target) return y }",
       {{0, 2}},
       {{0, 3}, {-1, 0}}},
  };
  return all;
}

TEST(Refusals, ReferenceAndCompiledRefuseTheSameData) {
  for (const Case& one : cases()) {
    const Graph graph = parse_graph(one.graph, all_ops());
    CompiledModel compiled(driver::compile_graph(graph), 1);
    for (const bool is_taken : {true, false}) {
      for (const auto& integers : is_taken ? one.taken : one.refused) {
        const std::vector<Datum> inputs = inputs_of(graph, integers);
        const std::string what = concat(one.name, ", first integer ", integers.front());
        EXPECT_EQ(takes([&] { reference::evaluate(graph, inputs); }), is_taken) << what;
        EXPECT_EQ(takes([&] { compiled.run(inputs); }), is_taken) << what;
      }
    }
  }
}

// A constant index out of range is inlined into the kernel and must fail there as well.
TEST(Refusals, ConstantIndicesOutOfRange) {
  for (const char* text :
       {"graph (x: f32[0, 2]) { i = constant i64[] 0 y = gather(x, i) return y }",
        "graph (x: f32[3, 2]) { i = constant i64[2] [1, 3] y = gather(x, i) return y }",
        "graph (x: f32[3, 2]) { i = constant i64[] -4 y = gather(x, i) return y }"}) {
    const Graph graph = parse_graph(text, all_ops());
    const std::vector<Datum> inputs = inputs_of(graph, {});
    EXPECT_FALSE(takes([&] { reference::evaluate(graph, inputs); })) << text;
    EXPECT_FALSE(takes([&] { CompiledModel(driver::compile_graph(graph), 1).run(inputs); }))
        << text;
  }
}

// Windows of more operations than can be counted, and loops whose results no memory holds.
TEST(Refusals, NodesThatNeverEnd) {
  for (const char* text :
       {"graph (x: f32[1, 1, 4, 4]) { y = lp_pool(x) {kernel_shape = [2147483648, 2147483648], "
        "pads = [1073741824, 1073741824, 1073741824, 1073741824]} return y }",
        "graph (x: f32[1, 1, 4, 4], r: f32[2, 4]) { b = constant i64[2] [0, 0] y = roi_align(x, r, "
        "b) {height = 2, width = 2, sampling_ratio = 2147483648} return y }",
        "graph (n: i64[], x: f32[2]) { y, s = loop(n, values = x) {carried_count = 1} body = graph "
        "(i: i64[], go: bool[], v: f32[2]) { w = add(v, v) return go, w, v } return s }",
        "graph (z: f32[1000000000000, 0], x: f32[2]) { y, s = scan(x, z) {state_count = 1} body = "
        "graph (v: f32[2], e: f32[0]) { w = add(v, v) return w, v } return s }"}) {
    const Graph graph = parse_graph(text, all_ops());
    const std::vector<Datum> inputs = inputs_of(graph, {std::int64_t{1} << 62});
    EXPECT_FALSE(takes([&] { reference::evaluate(graph, inputs); })) << text;
    EXPECT_FALSE(takes([&] { CompiledModel(driver::compile_graph(graph), 1).run(inputs); }))
        << text;
  }
}

TEST(Refusals, LimitsOfNodeOperationsAndEmptyBodies) {
  const auto error_of = [](const char* text, const reference::EvaluateOptions& options) {
    const Graph graph = parse_graph(text, all_ops());
    return error_summary([&] { reference::evaluate(graph, inputs_of(graph, {}), options); });
  };
  reference::EvaluateOptions options;
  const char* product = "graph (a: f32[8, 8], b: f32[8, 8]) { y = matmul(a, b) return y }";
  options.max_node_operations = 1024;
  EXPECT_EQ(error_of(product, options), "no error");
  options.max_node_operations = 1023;
  EXPECT_EQ(error_of(product, options), "matmul: it takes more operations than allowed");
  options.node_runs_left = std::make_shared<std::int64_t>(100);
  EXPECT_EQ(error_of("graph (z: f32[1000000000000, 0], x: f32[2]) { y = scan(x, z) {state_count = "
                     "1} body = graph (v: f32[2], e: f32[0]) { return v } return y }",
                     options),
            "the graph runs more nodes than allowed");
}

std::vector<Datum> total_outputs(const Graph& graph, const std::vector<Datum>& inputs,
                                 double default_value) {
  reference::EvaluateOptions options;
  options.default_value = default_value;
  return reference::evaluate(graph, inputs, options);
}

// An element that no output depends on may be skipped together with its errors; one that an output
// depends on fails in every implementation. `relevant` states the case.
TEST(Refusals, UnusedElementsMayFail) {
  const char* needed = "graph (x: f32[3], at: i64[2]) { y = gather(x, at) return y }";
  const char* divided = "graph (a: i64[2]) { c = constant i64[2] [7, 8] y = div(c, a) return y }";
  for (const auto& [text, integers] : {std::pair(needed, std::vector<std::int64_t>{1, 3}),
                                       std::pair(divided, std::vector<std::int64_t>{2, 0})}) {
    const Graph graph = parse_graph(text, all_ops());
    const std::vector<Datum> inputs = inputs_of(graph, integers);
    EXPECT_NE(total_outputs(graph, inputs, 5)[0].tensor().real_at(1),
              total_outputs(graph, inputs, 100)[0].tensor().real_at(1))
        << text;
    EXPECT_EQ(total_outputs(graph, inputs, 5)[0].tensor().real_at(0),
              total_outputs(graph, inputs, 100)[0].tensor().real_at(0))
        << text;
    EXPECT_FALSE(takes([&] { reference::evaluate(graph, inputs); })) << text;
    EXPECT_FALSE(takes([&] {
      CompiledModel(driver::compile_graph(driver::run_pipeline(graph, {})), 1).run(inputs);
    })) << text;
  }
  for (const char* text :
       {"graph (x: f32[3], at: i64[2]) { g = gather(x, at) n = neg(g) y = slice(n) {starts = [0], "
        "ends = [1]} return y }",
        "graph (x: f32[3], at: i64[2]) { g = gather(x, at) n = neg(g) s = slice(n) {starts = [1], "
        "ends = [1]} y = reduce_mean(s) {keep_axes = false} return y }"}) {
    const Graph graph = parse_graph(text, all_ops());
    const std::vector<Datum> inputs = inputs_of(graph, {1, 99});
    const std::vector<Datum> expected = total_outputs(graph, inputs, 5);
    EXPECT_EQ(testing::exact_difference(expected[0], total_outputs(graph, inputs, 100)[0]), "")
        << text;
    EXPECT_FALSE(takes([&] { reference::evaluate(graph, inputs); })) << text;
    CompiledModel compiled(driver::compile_graph(driver::run_pipeline(graph, {})), 1);
    std::vector<Datum> outputs;
    if (takes([&] { outputs = compiled.run(inputs); })) {
      EXPECT_EQ(testing::exact_difference(outputs[0], expected[0]), "") << text;
    }
  }
}

}  // namespace
}  // namespace tenon::refusals_test
