#include "base/error.h"
#include "expr/fused_groups.h"
#include "expr/signature.h"
#include "passes/definition/pass.h"
#include "passes/fuse/planner.h"
#include "passes/grouping.h"

#include <array>
#include <string>
#include <unordered_set>

namespace tenon::passes {
namespace {

using namespace fusing;

// Removes `stop_fusion` marks, which have served their purpose. A mark stays if an output would
// lose its name.
void drop_marks(Graph& graph) {
  for (NodeId id : graph.nodes_in_order()) {
    if (graph.op_name(id) != "stop_fusion") continue;
    const ValueId from = graph.node(id).results.front(), to = graph.node(id).operands.front();
    if (graph.is_output(from)) {
      if (graph.is_output(to) || !graph.value(to).producer) continue;
      graph.swap_names(from, to);
    }
    graph.replace_uses(from, to);
    graph.erase(id);
  }
}

// Limit on nodes in distinct kernels: the code generator takes about a millisecond for each.
constexpr std::size_t kMaxCode = 16384;

// Returns the number of nodes in distinct kernels; counts no further once it exceeds kMaxCode.
std::size_t code_size(const Graph& graph, const Grouping& grouping) {
  std::unordered_set<std::string> known;
  std::size_t size = 0;
  for (const Grouping::Group& group : grouping.groups) {
    std::vector<NodeId> nodes = group.copies;
    nodes.insert(nodes.end(), group.nodes.begin(), group.nodes.end());
    const ValueId result = graph.node(nodes.front()).results.front();
    if (result && graph.constant_of(result)) continue;
    std::string signature =
        nodes.size() == 1 ? signature_of(graph, nodes.front()) : signature_of(graph, nodes);
    if (!signature.empty() && !known.insert(std::move(signature)).second) continue;
    size += nodes.size();
    if (size > kMaxCode) break;
  }
  return size;
}

// Chooses smaller groups for a large graph with few identical kernels: small kernels repeat, and
// repeated kernels are compiled once.
Grouping cheapest_groups(const Graph& graph, const PassOptions& options) {
  constexpr std::array<std::size_t, 3> kSizes = {256, 8, 1};
  for (std::size_t size : kSizes) {
    if (graph.node_count() <= kMaxCode || size == kSizes.back()) {
      return plan_groups(graph, options.target, size, options.remarks);
    }
    Grouping grouping = plan_groups(graph, options.target, size, nullptr);
    if (code_size(graph, grouping) > kMaxCode) continue;
    return options.remarks ? plan_groups(graph, options.target, size, options.remarks) : grouping;
  }
  return {};
}

Graph fused(Graph graph, const PassOptions& options) {
  for (NodeId id : graph.nodes_in_order()) {
    if (graph.node(id).bodies.empty() || is_fused_group(graph, id)) continue;
    for (Graph& body : graph.mutable_node(id).bodies) body = fused(std::move(body), options);
  }
  graph.erase_dead();  // values that only dead nodes read have no readers
  const Grouping grouping = options.fuse_mode == "relay"
                                ? relay_groups(graph, options.fuse_max_depth, options.remarks)
                                : cheapest_groups(graph, options);
  graph = with_groups(std::move(graph), grouping, options.remarks);
  drop_marks(graph);
  return graph;
}

}  // namespace

/// Groups nodes that run as one kernel into `fused` nodes with bodies, by the cost model (fewest
/// bytes moved) or by Relay's rule.
Graph fuse(Graph graph, const PassOptions& options) { return fused(std::move(graph), options); }

}  // namespace tenon::passes
