#include "codegen/compile.h"
#include "driver/compile.h"
#include "driver/pipeline.h"
#include "host/compiled.h"
#include "ir/constraint.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "program/file.h"
#include "reference/evaluate.h"
#include "testing/compare.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <map>

// Symbolic extents: results equal those of the graph with numbers in place of symbols. The
// reference and the compiled program refuse inconsistent inputs by name.
namespace tenon::symbolic_extents_test {
namespace {

using Extents = std::map<std::string, std::int64_t>;

// The graph with numbers for its symbols, which are single capital letters.
Graph with_numbers(const std::string& text, const Extents& extents) {
  std::string fixed;
  for (std::size_t k = 0; k < text.size(); ++k) {
    const auto is_part = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    };
    const bool is_alone =
        (k == 0 || !is_part(text[k - 1])) && (k + 1 == text.size() || !is_part(text[k + 1]));
    const auto found = extents.find(text.substr(k, 1));
    fixed += is_alone && found != extents.end() ? std::to_string(found->second) : text.substr(k, 1);
  }
  return parse_graph(fixed, all_ops());
}

std::vector<Datum> inputs_of(const Graph& graph, const Extents& extents) {
  DimBindings numbers;
  for (const auto& [name, extent] : extents) numbers.emplace(name, Dim(extent));
  std::vector<Datum> inputs;
  for (ValueId id : graph.inputs()) {
    const TensorType& type = graph.value(id).type.tensor();
    Tensor x(type.dtype, constants(substitute(type.dims, numbers)));
    const double shift = 3.0 * static_cast<double>(inputs.size());
    for (std::int64_t k = 0; k < x.size(); ++k) x.set_real(k, static_cast<double>(k % 7) - shift);
    inputs.emplace_back(std::move(x));
  }
  return inputs;
}

void expect_same(const std::vector<Datum>& actual, const std::vector<Datum>& expected,
                 const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t k = 0; k < actual.size(); ++k) {
    const testing::Comparison comparison = testing::compare(actual[k], expected[k], {1e-4, 1e-5});
    EXPECT_TRUE(comparison.is_equal) << what << ", output " << k << ": " << comparison.what;
  }
}

void expect_as_fixed(const std::string& text, const std::vector<Extents>& runs) {
  const Graph graph = parse_graph(text, all_ops());
  CompiledModel model(driver::compile_graph(graph), 1);
  for (const Extents& extents : runs) {
    std::string name = text + "\n";
    for (const auto& [symbol, extent] : extents)
      name += symbol + " = " + std::to_string(extent) + " ";
    const std::vector<Datum> inputs = inputs_of(graph, extents);
    const std::vector<Datum> expected = reference::evaluate(with_numbers(text, extents), inputs);
    expect_same(reference::evaluate(graph, inputs), expected, name + "(reference)");
    expect_same(reference::evaluate(driver::run_pipeline(graph, {}), inputs), expected,
                name + "(reference, after passes)");
    expect_same(model.run(inputs), expected, name + "(compiled)");
  }
}

// Returns the compiled program's error; the reference must refuse the inputs as well, before and
// after passes.
std::string refusal(const std::string& text, const Extents& extents) {
  const Graph graph = parse_graph(text, all_ops());
  const std::vector<Datum> inputs = inputs_of(graph, extents);
  EXPECT_NE(error_text([&] { reference::evaluate(driver::run_pipeline(graph, {}), inputs); }),
            "no error")
      << text;
  CompiledModel model(driver::compile_graph(graph), 1);
  const std::string refused = error_text([&] { model.run(inputs); });
  EXPECT_EQ(error_text([&] { reference::evaluate(graph, inputs); }), refused) << text;
  return refused;
}

const std::vector<Extents> kBroadcasts = {
    {{"N", 1}, {"M", 3}}, {{"N", 3}, {"M", 1}},  {{"N", 3}, {"M", 3}},
    {{"N", 1}, {"M", 1}}, {{"N", 0}, {"M", 1}},  {{"N", 1}, {"M", 0}},
    {{"N", 0}, {"M", 0}}, {{"N", 40}, {"M", 1}}, {{"N", 1}, {"M", 40}}};

TEST(SymbolicExtents, BroadcastsEitherOperand) {
  expect_as_fixed("graph (x: f32[N, 4], z: f32[M, 4]) { y = add(x, z) return y }", kBroadcasts);
  expect_as_fixed("graph (x: f32[4, N], z: f32[4, M]) { y = add(x, z) e = exp(y) return e }",
                  kBroadcasts);
  expect_as_fixed(
      "graph (x: f32[N], z: f32[5, M]) { y = mul(x, z) r = reduce_sum(y) {axes = [0]} return r, y "
      "}",
      kBroadcasts);
  expect_as_fixed(
      "graph (x: bool[N, 2], z: bool[M, 1]) { a = logical_and(x, z) b = logical_or(a, z) c = "
      "logical_xor(b, x) return a, b, c }",
      kBroadcasts);
  expect_as_fixed(
      "graph (x: f32[N, 4], z: f32[M, 4]) { c = greater(x, z) y = where(c, x, z) s = softmax(y) "
      "{axis = 1} return s }",
      kBroadcasts);
}

TEST(SymbolicExtents, BroadcastsBatchedMatrices) {
  expect_as_fixed("graph (a: f32[N, 2, 5], b: f32[M, 5, 3]) { y = matmul(a, b) return y }",
                  kBroadcasts);
  expect_as_fixed("graph (a: f32[2, 6, 5], b: f32[N, 5, 3]) { y = matmul(a, b) return y }",
                  {{{"N", 1}}, {{"N", 2}}});
  expect_as_fixed(
      "graph (a: f32[N, 2, 5], b: f32[M, 5, 3]) { y = einsum(a, b) {equation = \"bij,bjk->bik\"} "
      "return y }",
      {{{"N", 1}, {"M", 3}}, {{"N", 3}, {"M", 1}}, {{"N", 3}, {"M", 3}}});
}

TEST(SymbolicExtents, BroadcastsMasks) {
  expect_as_fixed(
      "graph (q: f32[2, 3, 4, 8], k: f32[2, 3, 6, 8], m: f32[N, M, 6]) { y, _ = attention(q, k, k, "
      "m) return y }",
      {{{"N", 1}, {"M", 1}}, {{"N", 3}, {"M", 4}}, {{"N", 1}, {"M", 4}}, {{"N", 3}, {"M", 1}}});
}

TEST(SymbolicExtents, RealAndComplexSpectra) {
  expect_as_fixed("graph (x: f32[2, 8, N]) { y = dft(x) {axis = 1} return y }",
                  {{{"N", 1}}, {{"N", 2}}});
}

TEST(SymbolicExtents, ScalePerTensorOrChannel) {
  expect_as_fixed("graph (x: f32[2, 3], s: f32[N]) { y = add(x, x) z = mul(y, s) return z }",
                  {{{"N", 1}}, {{"N", 3}}});
}

TEST(SymbolicExtents, RefusalsNameTheAxis) {
  EXPECT_EQ(refusal("graph (x: f32[N, 4], z: f32[M, 4]) { y = add(x, z) return y }",
                    {{"N", 5}, {"M", 3}}),
            "add: the extents of this run do not fit\n"
            "  at        node 'y' (add), operand 'a', axis 0, and operand 'b', axis 0\n"
            "  expected  N == M, or one of them 1\n"
            "  got       5 and 3");
  EXPECT_EQ(refusal("graph (x: f32[1, C, 5, 5]) { w = constant f32[2, 3, 3, 3] splat 0.5 y = "
                    "conv(x, w) return y }",
                    {{"C", 4}}),
            "conv: the extents of this run do not fit\n"
            "  at        node 'y' (conv), operand 'x', axis 1\n"
            "  expected  C == 3\n"
            "  got       4 and 3");
  EXPECT_EQ(refusal("graph (x: f32[1, 3, H, 5]) { w = constant f32[2, 3, 3, 3] splat 0.5 y = "
                    "conv(x, w) return y }",
                    {{"H", 2}}),
            "conv: the extents of this run do not fit\n"
            "  at        node 'y' (conv), operand 'x', axis 2\n"
            "  expected  1 <= H - 2\n"
            "  got       1 and 0");
}

TEST(SymbolicExtents, DivisionByZeroNamesTheNode) {
  const Graph graph = parse_graph(
      "graph (x: f32[1, 2, 4], w: f32[2, M, 3]) {\n  y = conv_transpose(x, w) {groups = 2}\n"
      "  return y\n}\n",
      all_ops());
  CompiledModel model(driver::compile_model(graph, {}).program, 1);
  const std::vector<Datum> inputs = {Tensor(DType::F32, {1, 2, 4}), Tensor(DType::F32, {2, 0, 3})};
  for (const std::string& text : {error_text([&] { model.run(inputs); }),
                                  error_text([&] { reference::evaluate(graph, inputs); })}) {
    EXPECT_NE(text.find("divided by zero"), std::string::npos) << text;
    EXPECT_NE(text.find("node 'y'"), std::string::npos) << text;
  }
}

TEST(SymbolicExtents, RefusesInconsistentExtents) {
  const std::vector<std::pair<const char*, Extents>> cases = {
      {"graph (a: f32[2, N], b: f32[M, 3]) { y = matmul(a, b) return y }", {{"N", 4}, {"M", 5}}},
      {"graph (a: f32[N, 2, 4], b: f32[M, 4, 3]) { y = matmul(a, b) return y }",
       {{"N", 2}, {"M", 3}}},
      {"graph (a: f32[2, N], b: f32[2, M]) { y = concat(a, b) {axis = 0} return y }",
       {{"N", 4}, {"M", 5}}},
      {"graph (x: f32[N, 4]) { y = reshape(x) {shape = [3, -1]} return y }", {{"N", 4}}},
      {"graph (x: f32[N, 4]) { y = reshape(x) {shape = [3, 4]} return y }", {{"N", 4}}},
      {"graph (x: f32[N]) { a, b = split(x) {sizes = [2, 3]} return a, b }", {{"N", 6}}},
      {"graph (x: f32[2, C], s: f32[N]) { y = layer_norm(x, s) return y }", {{"C", 4}, {"N", 3}}},
      {"graph (x: f32[2, C], s: f32[N]) { y = layer_norm(x, s) return y }", {{"C", 1}, {"N", 3}}},
      {"graph (x: f32[2, C, 3], s: f32[N]) { y = batch_norm(x, s, s, s, s) return y }",
       {{"C", 4}, {"N", 3}}},
      {"graph (x: f32[2, C, 4, 4]) { y = depth_to_space(x) {block = 2} return y }", {{"C", 6}}},
      {"graph (x: f32[N, 4], z: f32[M, 4]) { y = add(x, z) z2 = sub(y, y) r = mul(z2, z2) return r "
       "}",
       {{"N", 5}, {"M", 3}}},
      {"graph (x: f32[N, M]) { y = squeeze(x) {axes = [0]} return y }", {{"N", 2}, {"M", 3}}},
  };
  for (const auto& [text, extents] : cases) {
    const std::string message = refusal(text, extents);
    EXPECT_NE(message.find("do not fit"), std::string::npos) << text << "\n" << message;
    EXPECT_NE(message.find(", axis "), std::string::npos) << text << "\n" << message;
  }
}

// A pass that removes a node keeps the node's constraints.
TEST(SymbolicExtents, PassesKeepConstraints) {
  const std::string text =
      "graph (x: f32[N, 4], z: f32[M, 4]) { s = shape(x) y = add(x, z) r = reshape(y) {shape = [M, "
      "4]} "
      "q = reshape(r) {shape = [M, 4]} return q }";
  const Graph graph = driver::run_pipeline(parse_graph(text, all_ops()), {});
  EXPECT_FALSE(kept_constraints(graph).empty());
  const std::string printed = print(graph);
  EXPECT_EQ(print(parse_graph(printed, all_ops())), printed);
}

TEST(SymbolicExtents, ProgramFilesKeepConstraints) {
  const std::string path = ::testing::TempDir() + "symbolic_extents_test.tnn";
  const Graph graph =
      parse_graph("graph (x: f32[N, 4], z: f32[M, 4]) { y = add(x, z) return y }", all_ops());
  write_program(driver::compile_graph(graph), path);
  CompiledModel model(read_program(path), 1);
  std::remove(path.c_str());
  const std::string message = error_text([&] {
    model.run(inputs_of(graph, {{"N", 2}, {"M", 3}}));
  });
  EXPECT_NE(message.find("operand 'a', axis 0, and operand 'b', axis 0"), std::string::npos)
      << message;
  expect_same(model.run(inputs_of(graph, {{"N", 1}, {"M", 3}})),
              reference::evaluate(graph, inputs_of(graph, {{"N", 1}, {"M", 3}})), "from the file");
}

// With host steps between kernels, and inside bodies.
TEST(SymbolicExtents, HostStepsAndBodies) {
  const std::string sorted =
      "graph (x: f32[N, 4], z: f32[M, 4]) { y = add(x, z) p = nonzero(y) q = mul(p, p) w = sub(y, "
      "z) return w, q }";
  expect_as_fixed(sorted, {{{"N", 1}, {"M", 3}}, {{"N", 3}, {"M", 1}}, {{"N", 3}, {"M", 3}}});
  EXPECT_NE(refusal(sorted, {{"N", 2}, {"M", 3}}).find("node 'y' (add), operand 'a', axis 0"),
            std::string::npos);
  const std::string body = R"(graph (c: bool[], x: f32[N, 4], z: f32[M, 4]) {
  y = if(c, x, z) then = graph (x: f32[N, 4], z: f32[M, 4]) {
    r = add(x, z)
    return r
  } else = graph (x: f32[N, 4], z: f32[M, 4]) {
    r = mul(x, z)
    return r
  }
  return y
})";
  expect_as_fixed(body, {{{"N", 1}, {"M", 3}}, {{"N", 3}, {"M", 1}}});
  const std::string message = refusal(body, {{"N", 2}, {"M", 3}});
  EXPECT_NE(message.find("axis 0"), std::string::npos) << message;
}

// The eighth power of a sum of six symbols exceeds the term limit of an extent.
std::string eighth_power(const std::string& then) {
  std::string text =
      R"(graph (a: f32[A], b: f32[B], c: f32[C], d: f32[D], e: f32[E], f: f32[F], z: f32[M]) {
  x0 = concat(a, b, c, d, e, f) {axis = 0}
)";
  for (int k = 0; k < 3; ++k) {
    text += concat("  r", k, " = unsqueeze(x", k, ") {axes = [0]}\n  c", k, " = unsqueeze(x", k,
                   ") {axes = [1]}\n  p", k, " = mul(r", k, ", c", k, ")\n  x", k + 1,
                   " = reshape(p", k, ") {shape = [-1]}\n");
  }
  return text + then;
}

TEST(SymbolicExtents, OversizedFormulasAreEvaluatedAtRunTime) {
  const std::string text = eighth_power(R"(  t = add(x3, z)
  y = relu(t)
  s = reduce_sum(y) {axes = [0]}
  return y, s
}
)");
  expect_as_fixed(text, {{{"A", 1}, {"B", 0}, {"C", 0}, {"D", 1}, {"E", 0}, {"F", 0}, {"M", 256}},
                         {{"A", 0}, {"B", 2}, {"C", 0}, {"D", 0}, {"E", 0}, {"F", 1}, {"M", 1}},
                         {{"A", 0}, {"B", 0}, {"C", 0}, {"D", 0}, {"E", 0}, {"F", 0}, {"M", 0}}});
  const std::string refused =
      refusal(text, {{"A", 1}, {"B", 0}, {"C", 0}, {"D", 1}, {"E", 0}, {"F", 0}, {"M", 5}});
  EXPECT_NE(refused.find("256 and 5"), std::string::npos) << refused;
}

// Operands joined with such a value have its extent; reductions over it do not.
TEST(SymbolicExtents, OversizedFormulasInConcatAndReductions) {
  expect_as_fixed(eighth_power(R"(  j = concat(x3, x2, z) {axis = 0}
  k = reduce_sum(p2) {axes = [0], keep_axes = false}
  l = reduce_max(p2) {axes = [0, 1], keep_axes = false}
  m = matmul(p2, p2)
  return j, k, l, m
}
)"),
                  {{{"A", 1}, {"B", 0}, {"C", 0}, {"D", 1}, {"E", 0}, {"F", 0}, {"M", 3}},
                   {{"A", 0}, {"B", 0}, {"C", 1}, {"D", 0}, {"E", 1}, {"F", 0}, {"M", 0}}});
}

}  // namespace
}  // namespace tenon::symbolic_extents_test
