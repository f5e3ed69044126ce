#include "expr/fused_groups.h"
#include "passes/definition/pass.h"
#include "passes/lower_qdq/rules.h"
#include "passes/rewrite/common_subexpressions.h"

namespace tenon::passes {
namespace qdq {

const rewrite::RuleSet& rules() {
  static const rewrite::RuleSet set = [] {
    std::vector<rewrite::Rule> all;
    for (const auto& family : {value_rules, contraction_rules, row_rules, requantize_rules}) {
      for (rewrite::Rule& rule : family()) all.push_back(std::move(rule));
    }
    return rewrite::RuleSet(std::move(all));
  }();
  return set;
}

}  // namespace qdq

/// QDQ lowering: convolutions and matrix products of dequantized 8-bit operands become integer
/// products with i32 accumulators, scaled once afterwards. If the result is quantized again,
/// requantization is one scale and one rounding.
Graph lower_qdq(Graph graph, const PassOptions& options) {
  for (NodeId id : graph.nodes_in_order()) {
    if (graph.node(id).bodies.empty() || is_fused_group(graph, id)) continue;
    for (Graph& body : graph.mutable_node(id).bodies) body = lower_qdq(std::move(body), options);
  }
  rewrite::apply(graph, qdq::rules(), "lower-qdq", options);
  rewrite::merge_common_subexpressions(graph);
  return graph;
}

}  // namespace tenon::passes
