// Distribution of rows, columns and images over threads: bit-identical for any thread count.
#include "program/verify.h"
#include "unit/codegen/same_results.h"

namespace tenon::shared_work_test {
namespace {

// Few columns: blocks of rows are the items of work; the last block is shorter.
TEST(SharedWork, DistributesRowsForFewColumns) {
  for (const int rows : {1, 9, 16, 63, 200, 201}) {
    for (const int columns : {1, 3, 8, 20}) {
      const std::string text = concat(R"(graph (x: f32[)", rows, R"(, 40]) {
  w = constant f32[40, )",
                                      columns, R"(] normal(seed = 1, mean = 0.0, deviation = 0.2)
  y = matmul(x, w)
  return y
}
)");
      expect_same(text);
      const Program program =
          codegen::compile(parse_graph(text, all_ops()), driver::cpu_options()).program;
      ASSERT_EQ(program.steps.size(), 1U);
      if (rows > 8) {
        EXPECT_GT(program.steps.front().work.number(), 1) << text;
      }
    }
  }
}

TEST(SharedWork, DistributesSymbolicRows) {
  const Graph graph = parse_graph(R"(graph (x: f32[N, 40]) {
  w = constant f32[40, 20] normal(seed = 1, mean = 0.0, deviation = 0.2)
  y = matmul(x, w)
  return y
}
)",
                                  all_ops());
  const Program program = codegen::compile(graph, driver::cpu_options()).program;
  for (const std::int64_t rows : {1, 8, 63, 64, 65, 300}) {
    EXPECT_EQ(program.steps.front().work.value(std::vector<std::int64_t>{rows}) > 2, rows > 64)
        << rows;
    const std::vector<Datum> inputs = models::random_inputs(graph, 3, {{"x", {rows, 40}}});
    const Tensor expected = reference::evaluate(graph, inputs).at(0).tensor();
    for (const int threads : {1, 3}) {
      const Tensor result = CompiledModel(program, threads).run(inputs).at(0).tensor();
      EXPECT_LE(largest_difference(result, expected), 1e-5) << rows;
    }
  }
}

// Loops that traverse all operands and results contiguously are fused into the rows of a register
// tile. Loops that one operand traverses in another order, and reduction loops, are not.
TEST(SharedWork, FusesShortLoopsIntoRows) {
  for (const char* rest :
       {"y = add(p, r)", "t = transpose(s) {perm = [1, 0, 2]}\n      y = add(p, t)",
        "y = cumsum(p) {axis = 1}", "y = mul(p, v)"}) {
    const Graph graph = parse_graph(
        concat(R"(graph (x: f32[S, B, 40], r: f32[S, B, 24], s: f32[B, S, 24], v: f32[B, 1]) {
  w = constant f32[40, 24] normal(seed = 1, mean = 0.0, deviation = 0.2)
  y = fused(x, w, r, s, v)
    group = graph (x: f32[S, B, 40], w: f32[40, 24], r: f32[S, B, 24], s: f32[B, S, 24], v: f32[B, 1]) {
      p = matmul(x, w)
      )",
               rest, "\n      return y\n    }\n  return y\n}\n"),
        all_ops());
    const Program program = codegen::compile(graph, driver::cpu_options()).program;
    CompiledModel model(program, 2);
    for (const std::int64_t steps : {1, 5, 30}) {
      for (const std::int64_t batch : {1, 3, 9}) {
        const std::vector<Datum> inputs = models::random_inputs(graph, 3,
                                                                {{"x", {steps, batch, 40}},
                                                                 {"r", {steps, batch, 24}},
                                                                 {"s", {batch, steps, 24}},
                                                                 {"v", {batch, 1}}});
        const Tensor expected = reference::evaluate(graph, inputs).at(0).tensor();
        const Tensor result = model.run(inputs).at(0).tensor();
        ASSERT_EQ(result.shape(), expected.shape()) << rest;
        EXPECT_LE(largest_difference(result, expected), 2e-5) << rest << steps << ", " << batch;
      }
    }
  }
}

// Each loop of four 7x7 images has fewer than eight rows. Fused, they have enough for register
// tiles, which read non-constant weights from a copy transposed along the channels.
TEST(SharedWork, TransposesForFusedShortLoops) {
  const std::string text = R"(graph (x: f32[4, 7, 7, 32]@NHWC, w: f32[48, 32, 3, 3]@OIHW) {
  y: f32[4, 7, 7, 48]@NHWC = conv(x, w) {pads = [1, 1, 1, 1], strides = [1, 1]}
  return y
}
)";
  expect_same(text, 1e-3);  // Winograd rounds more
  driver::CompileRequest request;
  request.is_untuned = true;
  request.allow_winograd = false;
  const Graph graph = parse_graph(R"(graph (x: f32[4, 32, 14, 14], w: f32[48, 32, 3, 3]) {
  y = conv(x, w) {pads = [1, 1, 1, 1], strides = [2, 2]}
  return y
}
)",
                                  all_ops());
  bool is_tiled = false;
  for (const codegen::Decision& decision : driver::decide_kernels(graph, request)) {
    const std::size_t chosen = decision.selection.versions.front().candidate;
    is_tiled = is_tiled || decision.candidates[chosen].name.starts_with("tiles");
  }
  EXPECT_TRUE(is_tiled);
}

// The batch and the columns are too few items of work: rows are distributed.
TEST(SharedWork, DistributesRowsInsideASymbolicBatch) {
  const Program program = codegen::compile(parse_graph(R"(graph (x: f32[N, 20, 30, 16]@NHWC) {
  w: f32[1, 1, 16, 24]@HWIO = constant f32[1, 1, 16, 24] normal(seed = 1, mean = 0.0, deviation = 0.2)
  y = conv(x, w)
  return y
}
)",
                                                       all_ops()),
                                           driver::cpu_options())
                              .program;
  EXPECT_GE(program.steps.back().work.value(std::vector<std::int64_t>{1}), 8);
}

// The batch may be one: inner loops are distributed as well.
TEST(SharedWork, DistributesInnerLoopsOfASymbolicBatch) {
  const Program program = codegen::compile(parse_graph(R"(graph (x: f32[N, 300, 40]) {
  y = softmax(x) {axis = -1}
  return y
}
)",
                                                       all_ops()),
                                           driver::cpu_options())
                              .program;
  EXPECT_EQ(program.steps.front().work.value(std::vector<std::int64_t>{1}), 300);
  EXPECT_EQ(program.steps.front().work.value(std::vector<std::int64_t>{2}), 600);
}

// Symbolic outer loops count as one item: a vector loop inside them is not distributed in blocks.
TEST(SharedWork, VectorLoopsInsideSymbolicBatches) {
  const Program program =
      codegen::compile(parse_graph(R"(graph (x: i32[B, S, 288], w: i32[288, 2304]) {
  y = matmul(x, w)
  return y
}
)",
                                   all_ops()),
                       driver::cpu_options())
          .program;
  EXPECT_EQ(program.steps.back().work.value(std::vector<std::int64_t>{2, 3}), 6);
}

// A group reads an image whose extents are formulas of an input's: the kernel receives their
// symbols.
TEST(SharedWork, GroupsAfterAStridedSymbol) {
  const Graph graph = parse_graph(R"(graph (x: f32[1, H, 9, 16]@NHWC) {
  w: f32[3, 3, 16, 8]@HWIO = constant f32[3, 3, 16, 8] normal(seed = 1, mean = 0.0, deviation = 0.2)
  p = max_pool(x) {kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]}
  y = fused(p, w)
    group = graph (q: f32[1, floor((H - 1)/2) + 1, 5, 16]@NHWC, v: f32[3, 3, 16, 8]@HWIO) {
      a = conv(q, v) {pads = [1, 1, 1, 1], strides = [2, 2]}
      r = relu(a)
      return r
    }
  z = neg(y)
  return z
}
)",
                                  all_ops());
  const Program program = codegen::compile(graph, driver::cpu_options()).program;
  EXPECT_TRUE(program.is_kernel_only());
  CompiledModel model(program, 2);
  for (const std::int64_t height : {1, 2, 7, 30}) {
    const std::vector<Datum> inputs = models::random_inputs(graph, 3, {{"x", {1, height, 9, 16}}});
    const Tensor expected = reference::evaluate(graph, inputs).at(0).tensor();
    const Tensor result = model.run(inputs).at(0).tensor();
    ASSERT_EQ(result.shape(), expected.shape());
    EXPECT_LE(largest_difference(result, expected), 1e-5);
  }
}

}  // namespace
}  // namespace tenon::shared_work_test
