#include "passes/fuse/verdicts.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>

namespace tenon::passes::fusing {
namespace {

// Enough names for a sentence; a value may have thousands of readers.
constexpr std::size_t kMaxNamed = 8;

class VerdictReporter {
 public:
  VerdictReporter(const Rules& rules, Remarks& remarks)
      : rules_(rules), graph_(rules.clusters.graph()), remarks_(remarks) {}

  void tell_group(ClusterId cluster) {
    const auto nodes = rules_.clusters.nodes(cluster);
    const bool reads_through = !rules_.copies_in(cluster).empty();
    if (nodes.size() > 1 || reads_through) tell_members(nodes, rules_.anchor_node(cluster));
    for (NodeId copy : rules_.copies_in(cluster)) {
      say(nodes.front(), concat("reads through ", quoted(copy), ", which is a view"));
    }
  }

  void tell_view(ClusterId cluster) {
    for (NodeId id : rules_.clusters.nodes(cluster)) {
      say(id, "view: readers access the elements in place");
    }
  }

  void tell_borders(ClusterId cluster) {
    for (NodeId id : rules_.clusters.nodes(cluster)) {
      for (ValueId result : graph_.node(id).results) {
        if (result) tell_border(id, result, cluster);
      }
    }
  }

 private:
  // Reports clusters with at most one anchor.
  void tell_members(std::span<const NodeId> nodes, NodeId centre) {
    for (NodeId id : nodes) {
      const NodeId reader = rules_.tiled_reader(id);
      if (id == centre) {
        say(id, concat("takes ", others(nodes, id), ": one kernel around this ", role_word(id)));
      } else if (reader) {
        say(id, concat("joins ", quoted(reader),
                       ": computed in pieces that stay in the cache, each right before ",
                       quoted(reader), " reads it"));
      } else if (centre) {
        say(id, joined(id, centre));
      } else {
        say(id, concat("runs in one kernel with ", others(nodes, id)));
      }
    }
  }

  void tell_border(NodeId id, ValueId result, ClusterId own) {
    std::vector<ClusterId> reported;
    for (NodeId reader : graph_.readers(result)) {
      const ClusterId other = rules_.clusters.of(reader);
      if (other == own || std::ranges::find(reported, other) != reported.end()) continue;
      if (reported.size() >= kMaxNamed) return;
      reported.push_back(other);
      const Refusal why = rules_.refusal(own, other);
      const Refusal between = "other kernels have to run between the two";
      say(id, concat("not fused with its reader ", quoted(reader), ": ", why ? why : between));
    }
  }

  // Describes why a node fits after the anchor, and how it reads its other operands.
  std::string joined(NodeId id, NodeId centre) const {
    const Node& node = graph_.node(id);
    const NodeAccess& access = rules_.access(id);
    std::string text = concat("joins ", quoted(centre), ": ");
    if (access.role == Role::Contraction) return text + "the same contraction of the same input";
    if (access.role == Role::Rows) return text + "folds the same axes of the same space";
    if (access.role == Role::Move)
      return text + "an index map, applied where elements are read or written";
    text += rules_.anchor(rules_.clusters.of(id)) == Role::Contraction
                ? "epilogue of a contraction, element by element"
                : "element by element in the same space";
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      const ValueId operand = node.operands[k];
      if (!operand || rules_.clusters.maker(operand) == rules_.clusters.of(id)) continue;
      const bool is_whole = graph_.value(operand).type.tensor().dims ==
                            graph_.value(node.results.front()).type.tensor().dims;
      if (is_whole && access.operands[k] == Access::Aligned) {
        text += concat("; '", graph_.value(operand).name,
                       "' is a residual, with one element per result element, not a bias, with one "
                       "per channel");
      } else if (access.operands[k] == Access::Aligned || access.operands[k] == Access::Broadcast) {
        text += concat("; '", graph_.value(operand).name, "' is repeated, as a bias is");
      }
    }
    return text;
  }

  std::string role_word(NodeId id) const {
    switch (rules_.access(id).role) {
      case Role::Contraction:
        return "contraction";
      case Role::Windows:
        return "fold over windows";
      default:
        return "fold over rows";
    }
  }

  std::string others(std::span<const NodeId> nodes, NodeId but) const {
    std::vector<std::string> names;
    for (NodeId id : nodes) {
      if (id == but) continue;
      if (names.size() == kMaxNamed) {
        names.push_back(concat(nodes.size() - 1 - kMaxNamed, " more"));
        break;
      }
      names.push_back(concat(quoted(id), " (", graph_.op_name(id), ")"));
    }
    return names.empty() ? "only index maps" : join(names, ", ");
  }

  std::string name(NodeId id) const {
    for (ValueId result : graph_.node(id).results) {
      if (result) return graph_.value(result).name;
    }
    return graph_.node(id).name;
  }
  std::string quoted(NodeId id) const { return concat("'", name(id), "'"); }

  void say(NodeId id, std::string text) { remarks_.say(name(id), "fuse", std::move(text)); }

  const Rules& rules_;
  const Graph& graph_;
  Remarks& remarks_;
};

}  // namespace

void report_verdicts(const Rules& rules, Remarks& remarks) {
  VerdictReporter teller(rules, remarks);
  for (ClusterId cluster : rules.clusters.in_order()) {
    const auto nodes = rules.clusters.nodes(cluster);
    const Node& first = rules.clusters.graph().node(nodes.front());
    if (first.operands.empty() && nodes.size() == 1) continue;  // a constant is not a kernel
    if (rules.is_dissolved(cluster)) {
      teller.tell_view(cluster);
      continue;
    }
    if (nodes.size() > 1 || !rules.copies_in(cluster).empty()) teller.tell_group(cluster);
    teller.tell_borders(cluster);
  }
}

}  // namespace tenon::passes::fusing
