#include "base/error.h"
#include "ops/fused_groups.h"
#include "passes/fuse/planner.h"
#include "passes/grouping.h"
#include "passes/pass.h"

namespace tenon {
namespace {

using namespace fusing;

// A mark that keeps its operand apart from what comes later has done its work. It stays where an
// output would lose its name.
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

Graph fused(Graph graph, const PassOptions& options) {
  for (NodeId id : graph.nodes_in_order()) {
    if (graph.node(id).bodies.empty() || is_fused_group(graph, id)) continue;
    for (Graph& body : graph.mutable_node(id).bodies) body = fused(std::move(body), options);
  }
  graph.erase_dead();  // what only the dead read has no readers
  const Grouping grouping = options.fuse_mode == "relay"
                                ? relay_groups(graph, options.fuse_max_depth, options.journal)
                                : plan_groups(graph, options.target, options.journal);
  graph = with_groups(std::move(graph), grouping, options.journal);
  drop_marks(graph);
  return graph;
}

}  // namespace

/// Groups nodes that run as one kernel into `fused` nodes with bodies; by what moves fewer bytes,
/// or by Relay's rule.
Graph fuse(Graph graph, const PassOptions& options) { return fused(std::move(graph), options); }

}  // namespace tenon
