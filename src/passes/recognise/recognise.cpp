#include "expr/fused_groups.h"
#include "passes/definition/pass.h"
#include "passes/dynamic_attributes.h"
#include "passes/recognise/rules.h"
#include "passes/rewrite/common_subexpressions.h"

namespace tenon::passes {
namespace recognition {

std::vector<std::string> definitions() {
  return {
      "square(v) = mul(v, v) | pow(v, 2)",
      "root(v) = sqrt(v) | pow(v, 0.5)",
      "inverse(v) = reciprocal(v) | div(1, v) | pow(v, -1)",
      "quotient(n, d) = div(n, d) | mul(n, inverse(d))",
      "over_root(n, v) = quotient(n, root(v)) | mul(n, pow(v, -0.5))",
      "sixth_of(v) = div(v, 6) | mul(v, ~0.16666667)",
      "by_root_two(v) = div(v, ~1.4142135624) | mul(v, ~0.7071067812)",
      "cubic(v) = mul(~0.7978845608, add(v, cubed(v))) |"
      " mul*(v, ~0.7978845608, add(1, mul*(v, v, ~0.044715))) |"
      " add(mul(v, ~0.7978845608), mul*(v, v, v, ~0.0356774081))",
      "cubed(v) = mul*(v, v, v, ~0.044715) | mul(~0.044715, pow(v, 3))",
  };
}

const rewrite::RuleSet& rules() {
  static const rewrite::RuleSet set = [] {
    std::vector<rewrite::Rule> all;
    for (const auto& family :
         {activation_rules, softmax_rules, normalization_rules, attention_rules}) {
      for (rewrite::Rule& rule : family()) all.push_back(std::move(rule));
    }
    return rewrite::RuleSet(std::move(all), definitions());
  }();
  return set;
}

}  // namespace recognition

/// Pattern matching of composite operators: replaces subgraphs that exporters decomposed into small
/// operators by one node (GELU, softmax, norms, attention).
Graph recognise(Graph graph, const PassOptions& options) {
  for (NodeId id : graph.nodes_in_order()) {
    if (graph.node(id).bodies.empty() || is_fused_group(graph, id)) continue;
    for (Graph& body : graph.mutable_node(id).bodies) body = recognise(std::move(body), options);
  }
  resolve_dynamic_attributes(graph);
  rewrite::apply(graph, recognition::rules(), "recognise", options);
  rewrite::merge_common_subexpressions(graph);  // keys that were transposed twice
  return graph;
}

}  // namespace tenon::passes
