#include "base/error.h"
#include "expr/access.h"
#include "expr/fused_groups.h"
#include "passes/choose_layouts/mover.h"
#include "passes/definition/pass.h"

#include <algorithm>
#include <cmath>

namespace tenon::passes {
namespace layouts {
namespace {

std::string megabytes(double bytes) {
  const double tenths = std::round(bytes / 1e5);
  const auto whole = static_cast<std::int64_t>(tenths);
  if (whole == 0) return concat(static_cast<std::int64_t>(bytes), " bytes");
  return concat(whole / 10, ".", whole % 10, " MB");
}

/// Emits a remark for each node on images: its layout, and the reason.
class LayoutReport {
 public:
  LayoutReport(const LayoutProblem& problem, const LayoutAssignment& choice, bool is_by_cost,
               Remarks& remarks)
      : problem_(problem),
        graph_(problem.graph),
        choice_(choice),
        is_by_cost_(is_by_cost),
        remarks_(remarks) {}

  void write() const {
    for (NodeId id : graph_.nodes_in_order()) {
      const LayoutRoles& roles = problem_.roles[id];
      const std::vector<ValueId>& results = graph_.node(id).results;
      const auto named = std::ranges::find_if(results, [](ValueId value) { return bool(value); });
      if (named == results.end()) continue;
      std::string text;
      if (roles.can_move()) {
        text = choice_.moves[id] != 0 ? why_moved(id) : why_not(id);
      } else if (roles.kind == LayoutRoles::Kind::Fixed && !roles.reason.empty()) {
        text = concat("stays: ", roles.reason);
      }
      if (!text.empty()) remarks_.say(graph_.value(*named).name, "choose-layouts", std::move(text));
    }
  }

 private:
  std::string why_moved(NodeId id) const {
    std::string text(problem_.forms.words());
    if (!is_by_cost_) {
      text += ": by TensorFlow's rule";
    } else if (choice_.saved_bytes[id] > 0) {
      text +=
          concat(": saves the time in which ", megabytes(choice_.saved_bytes[id]), " are moved");
    } else {
      text += ": supports any layout, and its neighbours use this one";
    }
    const Node& node = graph_.node(id);
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      if (problem_.roles[id].operands[k] != ImageRole::Image || is_made_moved(node.operands[k]))
        continue;
      const Value& value = graph_.value(node.operands[k]);
      if (free_constant(graph_, node.operands[k])) continue;
      text += concat("; '", value.name, "' is transposed once (",
                     megabytes(2 * size_hint_bytes(value.type)), ")");
    }
    return text;
  }

  std::string why_not(NodeId id) const {
    if (!is_by_cost_) return "stays: by TensorFlow's rule";
    if (choice_.is_empty) return "unchanged: no neighbour benefits from another layout";
    if (choice_.saved_bytes[id] > 0) {
      return concat("unchanged: transposes around it would move more than the ",
                    megabytes(choice_.saved_bytes[id]), " that it saves");
    }
    return "unchanged: supports any layout, and this one needs the fewest transposes";
  }

  bool is_made_moved(ValueId value) const {
    const NodeId producer = graph_.value(value).producer;
    return producer && (choice_.moves[producer] != 0 ||
                        problem_.roles[producer].kind == LayoutRoles::Kind::Takes);
  }

  const LayoutProblem& problem_;
  const Graph& graph_;
  const LayoutAssignment& choice_;
  bool is_by_cost_;
  Remarks& remarks_;
};

Graph with_layouts(Graph graph, const Forms& forms, const PassOptions& options) {
  for (NodeId id : graph.nodes_in_order()) {
    if (graph.node(id).bodies.empty() || is_fused_group(graph, id)) continue;
    for (Graph& body : graph.mutable_node(id).bodies) {
      body = with_layouts(std::move(body), forms, options);
    }
  }
  const LayoutProblem problem(graph, forms, options.target.heuristics.layout_loss_bytes_per_flop);
  const bool is_by_cost = options.layout_mode.empty();
  const LayoutAssignment choice = is_by_cost ? cheapest(problem) : tensorflow(problem);
  if (options.remarks) LayoutReport(problem, choice, is_by_cost, *options.remarks).write();
  if (!choice.is_empty) move(graph, problem, choice);
  return graph;
}

}  // namespace
}  // namespace layouts

/// Layout assignment: converts images to the axis order that convolutions prefer (NHWC or NCHW) if
/// that saves more than the added transposes cost. Decides for the whole graph at once, by minimum
/// cut.
Graph choose_layouts(Graph graph, const PassOptions& options) {
  if (options.layout_mode == "none") return graph;
  const bool is_tensorflow = options.layout_mode == "tensorflow";
  const std::string& to =
      options.layout_to.empty() ? options.target.heuristics.image_layout : options.layout_to;
  const layouts::Forms forms(is_tensorflow ? "NCHW" : to);
  return layouts::with_layouts(std::move(graph), forms, options);
}

}  // namespace tenon::passes
