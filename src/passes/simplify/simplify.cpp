#include "expr/fused_groups.h"
#include "passes/definition/pass.h"
#include "passes/dynamic_attributes.h"
#include "passes/rewrite/common_subexpressions.h"
#include "passes/simplify/rules.h"

namespace tenon::passes {
namespace simplification {

const rewrite::RuleSet& rules() {
  static const rewrite::RuleSet set = [] {
    std::vector<rewrite::Rule> all;
    for (const auto& family : {selection_rules, arithmetic_rules, view_rules, slice_rules,
                               window_rules, transpose_rules, einsum_rules}) {
      for (rewrite::Rule& rule : family()) all.push_back(std::move(rule));
    }
    return rewrite::RuleSet(std::move(all));
  }();
  return set;
}

}  // namespace simplification

/// Algebraic simplification: removes neutral elements, moves that cancel, slices of concats,
/// padding that a windowed op can do itself, common subexpressions and dead code.
Graph simplify(Graph graph, const PassOptions& options) {
  for (NodeId id : graph.nodes_in_order()) {
    if (graph.node(id).bodies.empty() || is_fused_group(graph, id)) continue;
    for (Graph& body : graph.mutable_node(id).bodies) body = simplify(std::move(body), options);
  }
  graph.erase_dead();
  resolve_dynamic_attributes(graph);
  // Merged nodes may match rules that require a single reader or the same value twice.
  constexpr int most_rounds = 8;
  for (int round = 0; round < most_rounds; ++round) {
    rewrite::merge_common_subexpressions(graph);
    const std::size_t rewritten =
        rewrite::apply(graph, simplification::rules(), "simplify", options).rewrites;
    if (rewritten == 0) break;
  }
  return graph;
}

}  // namespace tenon::passes
