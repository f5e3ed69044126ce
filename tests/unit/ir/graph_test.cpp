#include "fake_ops.h"
#include "ir/graph.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

namespace tenon::graph_test {
namespace {

using fake::node;
using fake::table;

const TensorType kPair{DType::F32, {2}, {}};

ValueId result(const Graph& graph, NodeId id, std::size_t index = 0) {
  return graph.node(id).results.at(index);
}

// x -> sum = x + x -> out = sum + x
struct Sums {
  Graph graph;
  ValueId x = graph.add_input("x", kPair);
  NodeId sum = graph.add_node(node("add", {x, x}, {"sum"}));
  NodeId out = graph.add_node(node("add", {result(graph, sum), x}, {"out"}));
  Sums() { graph.add_output(result(graph, out)); }
};

TEST(Graph, ReadersPerUse) {
  Sums s;
  EXPECT_EQ(s.graph.readers(s.x), (std::vector<NodeId>{s.sum, s.sum, s.out}));
  EXPECT_TRUE(s.graph.is_output(result(s.graph, s.out)));
  EXPECT_FALSE(s.graph.is_output(s.x));
  EXPECT_TRUE(problems_of(s.graph).empty());
}

TEST(Graph, ChoosesUnusedNames) {
  Graph graph;
  const ValueId x = graph.add_input("add_1", kPair);
  const NodeId first = graph.add_node(node("add", {x, x}));
  const NodeId second = graph.add_node(node("add", {x, x}));
  EXPECT_EQ(graph.value(result(graph, first)).name, "add");
  EXPECT_EQ(graph.value(result(graph, second)).name, "add_2");
  EXPECT_EQ(graph.free_name("other"), "other");
}

TEST(Graph, ComputesOptionalResultsOnlyWhenNamed) {
  Graph graph;
  const ValueId x = graph.add_input("x", kPair);
  EXPECT_EQ(graph.node(graph.add_node(node("pool", {x}))).results.size(), 1u);
  const NodeId gap = graph.add_node(node("pool", {x}, {"y", "_", "n"}));
  EXPECT_FALSE(graph.node(gap).results[1]);
  EXPECT_EQ(graph.value(result(graph, gap, 2)).name, "n");
  EXPECT_EQ(graph.node(graph.add_node(node("pool", {x}, {"z", "_"}))).results.size(), 1u);
  EXPECT_EQ(error_text([&] { graph.add_node(node("pool", {x}, {"_"})); }),
            "pool: result 'y' cannot be left out\n  at        node (pool)");
  EXPECT_TRUE(problems_of(graph).empty());
}

TEST(Graph, RefusesInvalidOperandsAndAttributes) {
  Sums s;
  EXPECT_EQ(error_text([&] { s.graph.add_node(node("add", {s.x}, {"z"})); }),
            "add: operand 'b' is missing\n  at        node 'z' (add)");
  EXPECT_EQ(error_text([&] {
              s.graph.add_node(node("add", {s.x, s.x, s.x}));
            }),
            "add: too many operands\n  at        node (add)\n  expected  at most 2\n  got       3");
  EXPECT_EQ(
      error_text([&] {
        s.graph.add_node(node("add", {s.x, s.x}, {"y", "z"}));
      }),
      "add: too many results\n  at        node 'y' (add)\n  expected  at most 1\n  got       2");
  EXPECT_EQ(error_text([&] { s.graph.add_node(node("if", {s.x})); }),
            "if: body 'then' is missing\n  at        node (if)");
  auto twice = node("reshape", {s.x, s.x});
  twice.attrs.set("shape", Dims{2});
  EXPECT_EQ(error_text([&] { s.graph.add_node(twice); }),
            "reshape: 'shape' is given twice\n  at        node (reshape)\n"
            "  expected  an attribute or an operand\n  got       both");
  EXPECT_EQ(error_text([&] { s.graph.add_node(node("reshape", {s.x})); }),
            "reshape: operand 'shape' is missing\n  at        node (reshape)");
  EXPECT_EQ(error_text([&] { table().get("ad"); }),
            "there is no op 'ad'\n  hint      did you mean 'add'?");
}

// A refused node leaves the graph unchanged.
TEST(Graph, RefusalLeavesTheGraphUnchanged) {
  Sums s;
  const Graph before = s.graph;
  EXPECT_THROW(s.graph.add_node(node("split", {s.x}, {"p", "q", "p"})), Error);
  EXPECT_THROW(s.graph.add_node(node("split", {s.x}, {"p", "x"})), Error);
  const ValueId other = s.graph.add_input("other", TensorType{DType::I64, {2}, {}});
  EXPECT_THROW(s.graph.add_node(node("add", {s.x, other}, {"p"})), Error);
  EXPECT_FALSE(s.graph.find("p"));
  EXPECT_EQ(s.graph.node_count(), before.node_count());
  EXPECT_EQ(s.graph.readers(s.x), before.readers(s.x));
  EXPECT_TRUE(problems_of(s.graph).empty());
}

TEST(Graph, InsertsBeforeANode) {
  Sums s;
  const NodeId between = s.graph.add_node(node("add", {s.x, s.x}, {"between"}), s.out);
  std::vector<NodeId> order;
  for (NodeId id : s.graph.nodes_in_order()) order.push_back(id);
  EXPECT_EQ(order, (std::vector<NodeId>{s.sum, between, s.out}));
}

TEST(Graph, ErasesWhileIterating) {
  Sums s;
  for (int i = 0; i < 4; ++i) s.graph.add_node(node("add", {s.x, s.x}));
  std::size_t visited = 0;
  for (NodeId id : s.graph.nodes_in_order()) {
    ++visited;
    if (!s.graph.readers(result(s.graph, id)).empty() || s.graph.is_output(result(s.graph, id)))
      continue;
    const NodeId following = s.graph.next(id);
    s.graph.erase(id);
    if (following) s.graph.erase(following);  // the next node of the loop
  }
  EXPECT_EQ(visited, 4u);
  EXPECT_EQ(s.graph.node_count(), 2u);
  EXPECT_TRUE(problems_of(s.graph).empty());
}

TEST(Graph, ReplacesUsesExceptOfTheReplacement) {
  Sums s;
  const ValueId wrapped = result(s.graph, s.graph.add_node(node("pool", {s.x}, {"w"}), s.sum));
  s.graph.replace_uses(s.x, wrapped);
  EXPECT_EQ(s.graph.readers(s.x).size(), 1u);
  EXPECT_EQ(s.graph.readers(wrapped).size(), 3u);
  s.graph.replace_uses(result(s.graph, s.out), wrapped);
  EXPECT_TRUE(s.graph.is_output(wrapped));
  EXPECT_FALSE(s.graph.is_output(result(s.graph, s.out)));
  EXPECT_TRUE(problems_of(s.graph).empty());
  EXPECT_EQ(s.graph.erase_dead(), 2u);
  EXPECT_EQ(print(s.graph), "graph (x: f32[2]) {\n  w = pool(x)\n  return w\n}\n");
}

TEST(Graph, ErasesOnlyUnusedNodes) {
  Sums s;
  EXPECT_THROW(s.graph.erase(s.sum), InternalError);
  EXPECT_THROW(s.graph.erase(s.out), InternalError);
  s.graph.set_outputs({s.x});
  s.graph.erase(s.out);
  EXPECT_EQ(s.graph.readers(result(s.graph, s.sum)).size(), 0u);
  EXPECT_FALSE(s.graph.find("out"));
  EXPECT_EQ(s.graph.readers(s.x).size(), 2u);
  EXPECT_EQ(s.graph.erase_dead(), 1u);
  EXPECT_TRUE(problems_of(s.graph).empty());
}

TEST(Graph, RenamesAndSwaps) {
  Sums s;
  s.graph.rename(s.x, "input");
  EXPECT_EQ(s.graph.find("input"), s.x);
  EXPECT_FALSE(s.graph.find("x"));
  EXPECT_THROW(s.graph.rename(s.x, "sum"), Error);
  s.graph.swap_names(s.x, result(s.graph, s.out));
  EXPECT_EQ(s.graph.find("out"), s.x);
  EXPECT_EQ(s.graph.value(s.x).name, "out");
  EXPECT_TRUE(problems_of(s.graph).empty());
}

TEST(Graph, NamesDataDependentExtents) {
  Graph graph;
  const ValueId x = graph.add_input("x", TensorType{DType::F32, {Dim::symbol("y#0")}, {}});
  const ValueId z = result(graph, graph.add_node(node("nonzero", {x}, {"z"})));
  const ValueId y = result(graph, graph.add_node(node("nonzero", {x}, {"y"})));
  EXPECT_EQ(to_string(graph.value(z).type), "i64[\"z#0\", 2]");
  EXPECT_EQ(to_string(graph.known_elements(z)->at(0)), "\"z#0\"");
  // The input's y#0 is another extent.
  EXPECT_FALSE(graph.value(y).type.tensor().dims[0] == Dim::symbol("y#0"));
  EXPECT_TRUE(problems_of(graph).empty());
}

TEST(Graph, InfersFromConstants) {
  Graph graph;
  const ValueId x = graph.add_input("x", kPair);
  const ValueId shape = graph.add_constant(
      table().get("constant"), Constant::splat(Tensor::scalar(DType::I64, 1), {3}), "s");
  const ValueId y = result(graph, graph.add_node(node("reshape", {x, shape})));
  EXPECT_EQ(to_string(graph.value(y).type), "f32[1, 1, 1]");
  EXPECT_NE(graph.constant_of(shape), nullptr);
  EXPECT_EQ(graph.constant_of(x), nullptr);
}

// A stated type holds while inference is undecided, and is replaced when inference decides.
TEST(Graph, StatedTypes) {
  Graph graph;
  const ValueId x = graph.add_input("x", kPair);
  const ValueId s = graph.add_input("s", TensorType{DType::I64, {2}, {}});
  const NodeId id = graph.add_node(node("reshape", {x, s}, {"y"}));
  const ValueId y = result(graph, id);
  EXPECT_FALSE(graph.value(y).type.is_known());
  graph.set_type(y, TensorType{DType::F32, {2, 1}, {}});
  EXPECT_TRUE(graph.has_stated_type(y));
  EXPECT_TRUE(problems_of(graph).empty());
  graph.infer(id);
  EXPECT_EQ(to_string(graph.value(y).type), "f32[2, 1]");
  graph.set_operand(id, 1, ValueId{});
  graph.set_attribute(id, "shape", Dims{1, 2});
  EXPECT_EQ(problems_of(graph),
            (std::vector<std::string>{
                "node 'y' (reshape): value 'y' is f32[2, 1] but its node gives f32[1, 2]"}));
  graph.infer(id);
  EXPECT_EQ(to_string(graph.value(y).type), "f32[1, 2]");
  EXPECT_FALSE(graph.has_stated_type(y));
}

TEST(Verify, ListsEveryProblem) {
  Sums s;
  s.graph.set_type(s.x, TensorType{DType::F32, {Dim::symbol("N", {1, 4})}, {}});
  s.graph.set_type(result(s.graph, s.out), TensorType{DType::F32, {Dim::symbol("N", {1, 8})}, {}});
  const ValueId late = result(s.graph, s.graph.add_node(node("add", {s.x, s.x}, {"late"})));
  s.graph.set_operand(s.sum, 0, late);
  s.graph.mutable_node(s.out).operands[0] = s.x;
  const std::vector<std::string> problems = problems_of(s.graph);
  const std::string text = error_text([&] { verify(s.graph); });
  EXPECT_NE(text.find("node 'sum' (add): value 'late' is read before it is made"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("symbol 'N' has two ranges, one of them in the type of 'out'"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("value 'sum' does not know its readers"), std::string::npos) << text;
  EXPECT_GE(problems.size(), 4u);
}

TEST(Graph, CopiesDeeply) {
  Sums s;
  Graph copy = s.graph;
  EXPECT_TRUE(identical(copy, s.graph));
  copy.rename(copy.find("sum"), "total");
  EXPECT_FALSE(identical(copy, s.graph));
  EXPECT_TRUE(s.graph.find("sum"));
}

}  // namespace
}  // namespace tenon::graph_test
