// Coordinates and expressions are DAGs: as trees these would have 2^60 nodes and more, and a walk
// without memoization would not end.
#include "base/error.h"
#include "driver/compile.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "nests/affine.h"
#include "nests/index_map.h"
#include "nests/nest_builder.h"
#include "nests/scalar_pool.h"
#include "nests/stride.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace tenon::nests::shared_parts_test {
namespace {

constexpr int kDoublings = 60;

Scalar doubled(Scalar scalar, int count) {
  for (int k = 0; k < count; ++k)
    scalar = binary_scalar(BinaryOp::Add, scalar->dtype, scalar, scalar);
  return scalar;
}

Expr doubled(Expr expr, int count) {
  for (int k = 0; k < count; ++k) expr = expr + expr;
  return expr;
}

std::size_t count_nodes(const Scalar& scalar, std::set<const ScalarNode*>& seen) {
  if (!scalar.is_defined() || !seen.insert(&scalar.node()).second) return 0;
  std::size_t count = 1;
  for (const Scalar& arg : scalar->args) count += count_nodes(arg, seen);
  return count;
}

std::size_t count_nodes(const Block& block) {
  std::set<const ScalarNode*> seen;
  std::size_t count = 0;
  for (const Statement& statement : block)
    count += count_nodes(statement.value, seen) + count_nodes(statement.body);
  return count;
}

TEST(SharedParts, CoordinatesAreMemoized) {
  const Scalar index = doubled(loop_scalar(0), kDoublings);
  EXPECT_EQ(growth(index, 0), std::int64_t{1} << kDoublings);
  EXPECT_EQ(growth(index, 1), 0);
  EXPECT_TRUE(depends_on(index, 0));
  EXPECT_FALSE(depends_on(index, 1));
  const auto affine = affine_of(index);
  ASSERT_TRUE(affine);
  EXPECT_EQ(affine->steps.at(0), std::int64_t{1} << kDoublings);
  const auto range = range_of(index, {{0, 3}});
  ASSERT_TRUE(range);
  EXPECT_EQ(range->hi, std::int64_t{2} << kDoublings);
}

// A coordinate that may wrap has no range: code that relied on one would read out of bounds.
TEST(SharedParts, WrappingCoordinatesHaveNoRange) {
  const Scalar index = doubled(loop_scalar(0), 200);
  EXPECT_FALSE(growth(index, 0));
  EXPECT_FALSE(affine_of(index));
  EXPECT_FALSE(range_of(index, {{0, 3}}));
}

TEST(SharedParts, NestsShareNodes) {
  const Dim n = Dim::symbol("N", {1, 9});
  for (const Dims& dims : {Dims{n, 8}, Dims{n, 1}, Dims{1, 8}}) {
    const Expr x = operand_expr(0, {DType::F32, dims, {}}),
               z = operand_expr(1, {DType::F32, {3, n, 8}, {}});
    const NestSequence sequence = build_nests("y", {doubled(x, kDoublings) + z});
    ASSERT_EQ(sequence.parts.size(), 1U);
    const LoopNest& nest = sequence.parts.front().nest;
    EXPECT_LT(count_nodes(nest.body), kDoublings + 20U) << to_string(dims);
    EXPECT_LT(to_string(nest).size(), 60U * kDoublings);
    EXPECT_NE(to_string(nest).find("let v1 = (v0 + v0)"), std::string::npos) << to_string(nest);
  }
}

// Reshapes rewrite the coordinates of shared parts; equal coordinates stay shared.
TEST(SharedParts, ReshapesKeepSharing) {
  Expr expr = operand_expr(0, {DType::F32, {4, 6}, {}});
  for (int k = 0; k < kDoublings; ++k) {
    expr = reshape(expr, k % 2 == 0 ? Dims{3, 8} : Dims{4, 6});
    expr = expr + expr;
  }
  const NestSequence sequence = build_nests("y", {expr});
  ASSERT_EQ(sequence.parts.size(), 1U);
  EXPECT_LT(count_nodes(sequence.parts.front().nest.body), 12U * kDoublings);
}

TEST(SharedParts, PoolMergesEqualNodes) {
  ScalarPool pool;
  const auto number = [](std::int64_t value) {
    return plus(times(loop_scalar(1), integer_scalar(8)), integer_scalar(value));
  };
  const Scalar a = pool(number(3));
  EXPECT_EQ(&a.node(), &pool(number(3)).node());
  EXPECT_NE(&a.node(), &pool(number(4)).node());
  // Zeros of both signs are distinct literals.
  EXPECT_NE(&pool(literal_scalar(DType::F32, 0.0, 0)).node(),
            &pool(literal_scalar(DType::F32, -0.0, 0)).node());
}

std::string doublings(int count, const std::string& type, const std::string& step,
                      const std::string& end) {
  std::string text = concat("graph (x: ", type, ") {\n");
  for (int k = 1; k <= count; ++k) {
    const std::string before = k == 1 ? "x" : concat("a", k - 1);
    std::string line = step;
    for (const auto& [word, name] : {std::pair<std::string, std::string>{"IN", before},
                                     {"OUT", concat("a", k)},
                                     {"MID", concat("m", k)}}) {
      for (std::size_t at = line.find(word); at != std::string::npos; at = line.find(word))
        line.replace(at, word.size(), name);
    }
    text += line;
  }
  return concat(text, "  y = ", end, "\n  return y\n}\n");
}

void expect_same(const std::string& text) {
  const Graph graph = parse_graph(text, all_ops());
  const std::vector<Datum> inputs = models::random_inputs(graph, 7);
  const Tensor expected = reference::evaluate(graph, inputs).at(0).tensor();
  const Tensor result = CompiledModel(driver::compile_graph(graph), 1).run(inputs).at(0).tensor();
  for (std::int64_t k = 0; k < expected.size(); ++k) {
    EXPECT_NEAR(result.real_at(k), expected.real_at(k), 1e-4 * std::abs(expected.real_at(k)) + 1e-6)
        << text;
  }
}

TEST(SharedParts, GraphsWithDoubledReadsCompile) {
  expect_same(doublings(40, "f32[4, 8]", "  OUT = add(IN, IN)\n", "neg(a40)"));
  expect_same(
      doublings(120, "f32[4, 8]", "  MID = sigmoid(IN)\n  OUT = mul(IN, MID)\n", "neg(a120)"));
  expect_same(
      doublings(40, "f32[3, 8]", "  MID = abs(IN)\n  OUT = sub(MID, IN)\n", "softmax(a40)"));
}

// Elements of i64 that are known at compile time are evaluated as dims; values outside the range of
// extents are left to the data.
TEST(SharedParts, KnownElementsMayExceedExtents) {
  std::string text = "graph (x: f32[4]) {\n  a0 = constant i64[2] [1, -3]\n";
  for (int k = 1; k <= 70; ++k) text += concat("  a", k, " = add(a", k - 1, ", a", k - 1, ")\n");
  const Graph graph = parse_graph(text + "  return a70\n}\n", all_ops());
  const Tensor result =
      reference::evaluate(graph, {models::random_inputs(graph, 1)}).at(0).tensor();
  EXPECT_EQ(result.integer_at(0), 0);  // 2^70 wraps
}

// Few kernels compute a concat or a split with many parts; each call has its part's offset.
TEST(ManyParts, ShareKernels) {
  constexpr int kParts = 200;
  std::string concat_text = "graph (", names, sizes, results;
  int width = 0;
  for (int k = 0; k < kParts; ++k) {
    const std::string comma = k == 0 ? "" : ", ";
    concat_text += concat(comma, "x", k, ": f32[3, ", 1 + k % 3, "]");
    names += concat(comma, "x", k);
    results += concat(comma, "p", k);
    sizes += concat(comma, 1 + k % 3);
    width += 1 + k % 3;
  }
  concat_text += concat(") {\n  y = concat(", names, ") {axis = 1}\n  return y\n}\n");
  const std::string split_text =
      concat("graph (x: f32[3, ", width, "]) {\n  ", results, " = split(x) {axis = 1, sizes = [",
             sizes, "]}\n  return ", results, "\n}\n");
  for (const std::string& text : {concat_text, split_text}) {
    const Graph graph = parse_graph(text, all_ops());
    const Program program = codegen::compile(graph, driver::cpu_options()).program;
    EXPECT_LT(program.kernels.size(), 10U);
    EXPECT_EQ(program.steps.size(), static_cast<std::size_t>(kParts));
    const std::vector<Datum> inputs = models::random_inputs(graph, 3);
    const std::vector<Datum> expected = reference::evaluate(graph, inputs);
    const std::vector<Datum> outputs = CompiledModel(program, 2).run(inputs);
    ASSERT_EQ(outputs.size(), expected.size());
    for (std::size_t k = 0; k < outputs.size(); ++k)
      EXPECT_TRUE(identical(outputs[k].tensor(), expected[k].tensor()));
  }
}

// Equal nodes reuse the decision of the first, under their own names.
TEST(RepeatedNodes, ReuseDecisions) {
  const Graph graph = parse_graph(R"(graph (x: f32[4, 40]) {
  a = softmax(x)
  b = softmax(a)
  c = softmax(b) {axis = 0}
  return c
}
)",
                                  all_ops());
  std::vector<codegen::Decision> decisions = codegen::decide(graph, driver::cpu_options());
  ASSERT_EQ(decisions.size(), 3U);
  EXPECT_EQ(decisions[0].name, "softmax a");
  EXPECT_EQ(decisions[1].name, "softmax b");
  EXPECT_EQ(decisions[1].first_step, 1U);
  EXPECT_NE(decisions[0].node, decisions[1].node);
  EXPECT_EQ(decisions[0].work, decisions[1].work);
  EXPECT_NE(decisions[1].work, decisions[2].work);
  const Program program = codegen::compile(graph, driver::cpu_options()).program;
  EXPECT_EQ(program.kernels.size(), 2U);
  const std::vector<Datum> inputs = models::random_inputs(graph, 2);
  const Tensor expected = reference::evaluate(graph, inputs).at(0).tensor();
  const Tensor result = CompiledModel(program, 1).run(inputs).at(0).tensor();
  for (std::int64_t k = 0; k < expected.size(); ++k)
    EXPECT_NEAR(result.real_at(k), expected.real_at(k), 1e-6);
}

}  // namespace
}  // namespace tenon::nests::shared_parts_test
