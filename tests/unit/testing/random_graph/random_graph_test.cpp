#include "base/error.h"
#include "ir/text.h"
#include "models/model.h"
#include "ops/definition/registry.h"
#include "testing/random_graph/random_graph.h"

#include <gtest/gtest.h>

#include <iostream>
#include <set>

namespace tenon::random_graph_test {
namespace {

// Collects the relations between the extents of two operands.
void collect_operands(const Graph& graph, const Node& node, std::set<std::string>& found) {
  if (node.operands.size() < 2) return;
  const auto type = [&](std::size_t k) -> const TensorType* {
    const bool is_tensor = node.operands[k] && graph.value(node.operands[k]).type.is_tensor();
    return is_tensor ? &graph.value(node.operands[k]).type.tensor() : nullptr;
  };
  const TensorType *a = type(0), *b = type(1);
  if (!a || !b || a->dims == b->dims) return;
  if (node.op->name == "add" || node.op->name == "mul") {
    found.insert(a->rank() < b->rank() ? "the first broadcast" : "the second broadcast");
  }
  if (node.op->name == "matmul" && a->rank() != b->rank()) found.insert("batches broadcast");
}

void collect(const Graph& graph, std::set<std::string>& found) {
  const auto see = [&](ValueId id) {
    if (!id || !graph.value(id).type.is_tensor()) return;
    const TensorType& type = graph.value(id).type.tensor();
    found.insert("dtype " + to_string(type.dtype));
    found.insert(concat("rank ", type.rank()));
    for (const Dim& dim : type.dims) {
      if (!dim.is_constant()) found.insert("a symbol");
      if (dim == Dim(0)) found.insert("an extent of zero");
      if (dim == Dim(1)) found.insert("an extent of one");
      if (dim.is_constant() && dim.constant() > 8 && dim.constant() % 2 == 1)
        found.insert("a long odd extent");
    }
  };
  for (ValueId input : graph.inputs()) see(input);
  for (NodeId id : graph.nodes_in_order()) {
    const Node& node = graph.node(id);
    found.insert("op " + node.op->name);
    if (node.results.size() > 1) found.insert("several results");
    for (ValueId result : node.results) see(result);
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      const OperandDef& def = node.op->operands[std::min(k, node.op->operands.size() - 1)];
      if (node.operands[k] && def.is_dynamic_attribute) found.insert("a dynamic attribute");
      if (!node.operands[k]) found.insert("a missing operand");
    }
    for (const Graph& body : node.bodies) collect(body, found);
    collect_operands(graph, node, found);
    for (const auto& [name, value] : node.attrs) {
      const auto* dims = std::get_if<Dims>(&value);
      const auto* groups = std::get_if<Dim>(&value);
      if (dims && name == "dilations" && *dims != Dims(dims->size(), 1))
        found.insert("dilations of " + node.op->name);
      if (dims && name == "strides" && *dims != Dims(dims->size(), 1))
        found.insert("strides of " + node.op->name);
      if (groups && name == "groups" && *groups != Dim(1))
        found.insert("groups of " + node.op->name);
      if (name == "ceil_mode" && std::get<bool>(value))
        found.insert("ceil_mode of " + node.op->name);
    }
  }
}

TEST(RandomGraph, CoversGraphFeatures) {
  std::set<std::string> found;
  for (std::uint64_t seed = 0; seed < 700; ++seed)
    collect(testing::random_graph({seed, 12}), found);
  for (const char* what : {"a symbol",
                           "an extent of zero",
                           "an extent of one",
                           "a long odd extent",
                           "the first broadcast",
                           "the second broadcast",
                           "batches broadcast",
                           "dilations of conv",
                           "strides of conv",
                           "groups of conv",
                           "groups of conv_transpose",
                           "dilations of max_pool",
                           "ceil_mode of max_pool",
                           "ceil_mode of average_pool",
                           "several results",
                           "a dynamic attribute",
                           "a missing operand",
                           "dtype f32",
                           "dtype f64",
                           "dtype f16",
                           "dtype bf16",
                           "dtype f8e4m3fn",
                           "dtype f8e5m2",
                           "dtype i64",
                           "dtype i32",
                           "dtype i16",
                           "dtype i8",
                           "dtype u64",
                           "dtype u32",
                           "dtype u16",
                           "dtype u8",
                           "dtype u4",
                           "dtype bool",
                           "dtype string",
                           "dtype c64",
                           "rank 0",
                           "rank 1",
                           "rank 2",
                           "rank 3",
                           "rank 4",
                           "rank 5",
                           "op if",
                           "op loop"}) {
    EXPECT_TRUE(found.contains(what)) << what;
  }
  std::string missing;
  std::size_t covered = 0;
  for (const OpDef* op : all_ops().all()) {
    if (found.contains("op " + op->name))
      ++covered;
    else
      missing += " " + op->name;
  }
  EXPECT_GE(covered, all_ops().all().size() * 9 / 10) << "never made:" << missing;
}

TEST(RandomGraph, IsDeterminedByItsSeed) {
  const std::string once = print(testing::random_graph({77, 20}));
  EXPECT_EQ(once, print(testing::random_graph({77, 20})));
  EXPECT_NE(once, print(testing::random_graph({78, 20})));
  EXPECT_EQ(once, print(models::load_model("random:77?nodes=20")));
}

TEST(RandomGraph, WideGraphs) {
  const Graph graph = models::load_model("random:3?nodes=2,wide=1");
  std::int64_t largest = 0;
  for (ValueId input : graph.inputs()) {
    largest = std::max(largest, product(graph.value(input).type.tensor().dims).constant());
  }
  EXPECT_GT(largest, 32 * 9 * 9 - 1);
}

TEST(RandomGraph, TextRoundTrip) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Graph graph = testing::random_graph({seed, 10});
    EXPECT_TRUE(identical(graph, parse_graph(print(graph), all_ops()))) << print(graph);
  }
}

TEST(RandomGraph, RefusesMalformedDescriptions) {
  for (const char* text : {"", "x", "-1", "1?nodes", "1?nodes=0", "1?node=3", "1?nodes=3=4",
                           "1?nodes=3,", "1?wide=2"}) {
    EXPECT_THROW(testing::random_graph(std::string_view(text)), Error) << text;
  }
}

}  // namespace
}  // namespace tenon::random_graph_test
