#include "base/error.h"
#include "base/text.h"
#include "expr/analysis.h"
#include "expr/fused_groups.h"
#include "passes/definition/pass.h"
#include "passes/dynamic_attributes.h"
#include "passes/fold_scales/plan.h"

#include <algorithm>
#include <unordered_set>

namespace tenon::passes {
namespace scales {
namespace {

bool holds_rounding(const Expr& expr, std::unordered_set<const ExprNode*>& seen) {
  const ExprNode& node = expr.node();
  if (!seen.insert(&node).second) return false;
  const bool is_rounding = (node.kind == ExprKind::Unary &&
                            (node.unary == UnaryOp::RoundEven || node.unary == UnaryOp::Floor ||
                             node.unary == UnaryOp::Ceil || node.unary == UnaryOp::Trunc)) ||
                           (node.kind == ExprKind::Cast && is_integer(node.dtype) &&
                            is_float(node.args.front().node().dtype));
  return is_rounding ||
         std::ranges::any_of(node.args, [&](const Expr& arg) { return holds_rounding(arg, seen); });
}

// Returns whether a reader rounds the product to integers. Such a factor stays, because its last
// bit decides about the rounding.
bool is_rounded_next(const Graph& graph, NodeId id) {
  if (graph.node(id).operands.size() != 2) return false;
  for (NodeId reader : graph.readers(graph.node(id).results[0])) {
    if (!graph.node(reader).op->lower || !graph.node(reader).bodies.empty()) continue;
    std::unordered_set<const ExprNode*> seen;
    for (const Expr& expr : lowered(graph, reader)) {
      if (expr.is_defined() && holds_rounding(expr, seen)) return true;
    }
  }
  return false;
}

class ScaleFolder {
 public:
  ScaleFolder(Graph& graph, const PassOptions& options) : graph_(graph), options_(options) {}

  // In graph order, so that a scale folded into a convolution does not block the next one.
  void fold_backwards() {
    for (NodeId id : graph_.nodes_in_order()) {
      if (is_gone_[id]) continue;
      std::string why;
      std::optional<ScaleSource> source = source_of(graph_, id, why);
      if (source && is_rounded_next(graph_, id)) {
        source.reset();
        why = "the product is rounded";
      }
      if (!source) {
        if (refusals_[id].empty()) say(id, why.empty() ? "" : concat("not folded: ", why));
        refusals_[id] = why;
        continue;
      }
      const ValueId value = graph_.node(id).operands[source->operand];
      ScalePlan plan(graph_, options_.max_constant_bytes);
      if (plan.push_back(value, source->affine) && plan.prepare()) {
        apply(id, *source, plan, true);
      } else {
        refusals_[id] = plan.why();
      }
    }
  }

  // In reverse order, for the same reason.
  bool fold_forwards() {
    std::vector<NodeId> nodes;
    for (NodeId id : graph_.nodes_in_order()) nodes.push_back(id);
    bool has_folded = false;
    for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) {
      std::string why;
      if (is_gone_[*id]) continue;
      const std::optional<ScaleSource> source = source_of(graph_, *id, why);
      if (!source) continue;
      ScalePlan plan(graph_, options_.max_constant_bytes);
      if (plan.push_on(graph_.node(*id).results[0], source->affine) && plan.prepare()) {
        apply(*id, *source, plan, false);
        has_folded = true;
        continue;
      }
      // A node that only adds a constant gets no remark.
      if (!source->affine.scales()) continue;
      say(*id,
          concat("not folded backwards: ", refusals_[*id], "; not folded forwards: ", plan.why()));
    }
    return has_folded;
  }

 private:
  void say(NodeId id, std::string text) {
    if (!options_.remarks || text.empty()) return;
    options_.remarks->say(graph_.value(graph_.node(id).results[0]).name, "fold-scales",
                          std::move(text));
  }

  void apply(NodeId id, const ScaleSource& source, const ScalePlan& plan, bool is_backwards) {
    if (options_.remarks) {
      std::vector<std::string> names;
      for (NodeId taker : plan.takers()) {
        const Node& node = graph_.node(taker);
        names.push_back(concat("'", graph_.value(node.results[0]).name, "'"));
        say(taker, concat("takes ", source.affine.scales() ? "the scale of '" : "the shift of '",
                          graph_.value(graph_.node(id).results[0]).name, "'"));
      }
      say(id, concat("folded into ", join(names, ", "),
                     is_backwards ? ", which it reads" : ", which reads it"));
    }
    for (NodeId dead : plan.commit(graph_)) is_gone_[dead] = 1;
    const Node& node = graph_.node(id);
    const ValueId value = node.operands[source.operand], result = node.results[0];
    graph_.replace_uses(result, value);
    if (is_backwards) {
      // The contraction keeps its name, which `explain` and kernel names use.
      const NodeId maker = graph_.value(value).producer;
      const bool is_taker = std::ranges::count(plan.takers(), maker) > 0;
      if (is_taker && graph_.node(maker).name.empty())
        graph_.mutable_node(maker).name = graph_.value(value).name;
      graph_.swap_names(result, value);
    }
    // Drops the operand, so that the dead node no longer counts as a reader.
    graph_.set_operand(id, source.operand, {});
    is_gone_[id] = 1;
  }

  Graph& graph_;
  const PassOptions& options_;
  IdMap<NodeId, std::string> refusals_;
  IdMap<NodeId, char> is_gone_;
};

}  // namespace
}  // namespace scales

/// Batch-norm folding: folds per-channel scales and shifts by constants into the weights and biases
/// of the convolutions and matrix products before or after them.
Graph fold_scales(Graph graph, const PassOptions& options) {
  for (NodeId id : graph.nodes_in_order()) {
    if (graph.node(id).bodies.empty() || is_fused_group(graph, id)) continue;
    for (Graph& body : graph.mutable_node(id).bodies) body = fold_scales(std::move(body), options);
  }
  scales::ScaleFolder folder(graph, options);
  folder.fold_backwards();
  if (folder.fold_forwards()) folder.fold_backwards();  // shifts that now meet further scales
  graph.erase_dead();
  return graph;
}

}  // namespace tenon::passes
