#include "base/error.h"
#include "driver/model.h"
#include "driver/random_graph/random_graph.h"
#include "ir/text.h"
#include "ops/registry.h"

#include <gtest/gtest.h>

#include <iostream>
#include <set>

namespace tenon {
namespace {

void collect(const Graph& graph, std::set<std::string>& found) {
  const auto see = [&](ValueId id) {
    if (!id || !graph.value(id).type.is_tensor()) return;
    const TensorType& type = graph.value(id).type.tensor();
    found.insert("dtype " + to_string(type.dtype));
    found.insert(concat("rank ", type.rank()));
    for (const Dim& dim : type.dims) {
      if (!dim.is_constant()) found.insert("a symbol");
      if (dim == Dim(0)) found.insert("an extent of zero");
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
      if (node.operands[k] && def.is_late_attribute) found.insert("a late attribute");
      if (!node.operands[k]) found.insert("a missing operand");
    }
    for (const Graph& body : node.bodies) collect(body, found);
  }
}

TEST(RandomGraph, CoversWhatGraphsCanHave) {
  std::set<std::string> found;
  for (std::uint64_t seed = 0; seed < 700; ++seed) collect(random_graph({seed, 12}), found);
  for (const char* what : {"a symbol",
                           "an extent of zero",
                           "several results",
                           "a late attribute",
                           "a missing operand",
                           "dtype f32",
                           "dtype f64",
                           "dtype f16",
                           "dtype bf16",
                           "dtype i64",
                           "dtype i8",
                           "dtype u8",
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

TEST(RandomGraph, FollowsFromItsSeed) {
  const std::string once = print(random_graph({77, 20}));
  EXPECT_EQ(once, print(random_graph({77, 20})));
  EXPECT_NE(once, print(random_graph({78, 20})));
  EXPECT_EQ(once, print(load_model("random:77?nodes=20")));
}

TEST(RandomGraph, IsReadBackFromItsText) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Graph graph = random_graph({seed, 10});
    EXPECT_TRUE(identical(graph, parse_graph(print(graph), all_ops()))) << print(graph);
  }
}

TEST(RandomGraph, RefusesOtherDescriptions) {
  for (const char* text : {"", "x", "-1", "1?nodes", "1?nodes=0", "1?node=3", "1?nodes=3=4"}) {
    EXPECT_THROW(random_graph(std::string_view(text)), Error) << text;
  }
}

}  // namespace
}  // namespace tenon
