#include "ops/definition/registry.h"
#include "passes/fuse/clusters.h"

#include <gtest/gtest.h>

#include <random>

namespace tenon::passes::fusing::clusters_test {
namespace {

// Adds of values picked at random among those before.
Graph random_graph(std::mt19937& random, std::size_t node_count) {
  Graph graph("random");
  std::vector<ValueId> values = {graph.add_input("x", TensorType{DType::F32, {Dim(2)}, {}})};
  for (std::size_t k = 0; k < node_count; ++k) {
    Graph::NewNode node;
    node.op = &find_op("add");
    const std::size_t reach = std::min<std::size_t>(values.size(), 6);
    for (int side = 0; side < 2; ++side) {
      node.operands.push_back(values[values.size() - 1 - random() % reach]);
    }
    values.push_back(graph.node(graph.add_node(std::move(node))).results.front());
  }
  graph.add_output(values.back());
  return graph;
}

// Returns whether the order of clusters is topological.
bool is_in_order(const Clusters& clusters) {
  const Graph& graph = clusters.graph();
  IdMap<ClusterId, std::size_t> place(graph.node_count(), 0);
  std::size_t next = 0, seen = 0;
  for (ClusterId cluster : clusters.in_order()) {
    place[cluster] = next++;
    seen += clusters.nodes(cluster).size();
  }
  if (seen != graph.node_count()) return false;
  for (NodeId id : graph.nodes_in_order()) {
    for (ValueId operand : graph.node(id).operands) {
      const ClusterId maker = clusters.maker(operand);
      if (maker && place[maker] > place[clusters.of(id)]) return false;
    }
  }
  return true;
}

// Returns whether a path leads from one cluster to the other through a third.
bool has_detour(const Clusters& clusters, ClusterId from, ClusterId to) {
  std::vector<ClusterId> open = {from};
  IdMap<ClusterId, std::uint8_t> seen(clusters.graph().node_count(), 0);
  while (!open.empty()) {
    const ClusterId at = open.back();
    open.pop_back();
    for (NodeId id : clusters.nodes(at)) {
      for (NodeId reader : clusters.graph().readers(clusters.graph().node(id).results.front())) {
        const ClusterId next = clusters.of(reader);
        if (next == at || seen[next]) continue;
        if (next == to) {
          if (at == from) continue;
          return true;
        }
        seen[next] = 1;
        open.push_back(next);
      }
    }
  }
  return false;
}

TEST(Clusters, MergeUnlessAPathLeadsThroughAThird) {
  std::mt19937 random(1);
  std::size_t merged = 0, refused = 0;
  for (int round = 0; round < 60; ++round) {
    const Graph graph = random_graph(random, 40);
    Clusters clusters(graph);
    std::vector<NodeId> nodes;
    for (NodeId id : graph.nodes_in_order()) nodes.push_back(id);
    for (int attempt = 0; attempt < 60; ++attempt) {
      const ClusterId a = clusters.of(nodes[random() % nodes.size()]);
      const ClusterId b = clusters.of(nodes[random() % nodes.size()]);
      if (a == b) continue;
      const bool is_allowed = !has_detour(clusters, a, b) && !has_detour(clusters, b, a);
      const bool is_merged = clusters.merge(a, b).has_value();
      ASSERT_EQ(is_merged, is_allowed);
      ASSERT_TRUE(is_in_order(clusters));
      ++(is_merged ? merged : refused);
    }
  }
  EXPECT_GT(merged, 100u);
  EXPECT_GT(refused, 100u);
}

// Each merge inserts all intermediate clusters at one label, until the labels run out.
TEST(Clusters, RelabelWhenLabelsRunOut) {
  Graph graph("wide");
  const ValueId x = graph.add_input("x", TensorType{DType::F32, {Dim(2)}, {}});
  for (int k = 0; k < 400; ++k) {
    Graph::NewNode node;
    node.op = &find_op("relu");
    node.operands = {x};
    graph.add_output(graph.node(graph.add_node(std::move(node))).results.front());
  }
  Clusters clusters(graph);
  std::vector<NodeId> nodes;
  for (NodeId id : graph.nodes_in_order()) nodes.push_back(id);
  for (std::size_t k = 1; k + 1 < nodes.size(); k += 2) {
    ASSERT_TRUE(clusters.merge(clusters.of(nodes[0]), clusters.of(nodes[k])));
    ASSERT_TRUE(is_in_order(clusters));
  }
}

}  // namespace
}  // namespace tenon::passes::fusing::clusters_test
