#include "ops/fused_groups.h"
#include "passes/integer_products/rules.h"
#include "passes/pass.h"
#include "passes/rewrite/common_subexpressions.h"

namespace tenon {
namespace integers {

const rewrite::RuleSet& rules() {
  static const rewrite::RuleSet set = [] {
    std::vector<rewrite::Rule> all;
    for (const auto& family : {value_rules, product_rules, row_rules, requantize_rules}) {
      for (rewrite::Rule& rule : family()) all.push_back(std::move(rule));
    }
    return rewrite::RuleSet(std::move(all));
  }();
  return set;
}

}  // namespace integers

/// QDQ lowering: convolutions and matrix products of dequantized 8-bit operands become integer
/// products with i32 accumulators, scaled once afterwards. If the result is quantized again,
/// requantization is one scale and one rounding.
Graph integer_products(Graph graph, const PassOptions& options) {
  for (NodeId id : graph.nodes_in_order()) {
    if (graph.node(id).bodies.empty() || is_fused_group(graph, id)) continue;
    for (Graph& body : graph.mutable_node(id).bodies)
      body = integer_products(std::move(body), options);
  }
  rewrite::apply(graph, integers::rules(), "integer-products", options);
  rewrite::merge_common_subexpressions(graph);
  return graph;
}

}  // namespace tenon
