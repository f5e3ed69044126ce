#include "base/error.h"
#include "passes/fuse/planner.h"
#include "passes/fuse/relay_graph.h"

#include <algorithm>
#include <unordered_set>

namespace tenon::passes::fusing {
namespace {

/// Union-find over expressions. An expression keeps its own count and kind in addition to those of
/// its root, because some of Relay's rules use them.
class RelayPartition {
 public:
  RelayPartition(const RelayGraph& graph, std::size_t max_depth)
      : graph_(graph), tree_(post_dominators(graph)), max_depth_(max_depth) {
    for (std::size_t k = 0; k < graph.expressions.size(); ++k) {
      const OpPattern pattern = graph.expressions[k].pattern;
      records_.push_back(
          {static_cast<std::uint32_t>(k), 1, pattern, pattern == OpPattern::OutEWiseFusable});
    }
  }

  void run() {
    for (int phase = 0; phase < 3; ++phase) {
      for (std::uint32_t k = 0; k < records_.size(); ++k) consider(k, phase);
    }
  }

  std::uint32_t root(std::uint32_t at) {
    while (records_[at].parent != at) {
      records_[at].parent = records_[records_[at].parent].parent;
      at = records_[at].parent;
    }
    return at;
  }

 private:
  struct Record {
    std::uint32_t parent;
    std::size_t count;
    OpPattern pattern;
    bool has_anchor;
  };

  void consider(std::uint32_t node, int phase) {
    const OpPattern own = records_[node].pattern;
    const std::uint32_t sink = tree_[node].parent;
    if (own == OpPattern::Opaque || sink == PostDominator::kNone) return;
    if (is_too_deep(node, sink)) return;
    if (phase == 2) return consider_tuple(node, sink);
    if (root(node) == root(sink) || records_[sink].pattern == OpPattern::Tuple) return;
    const OpPattern way = tree_[node].pattern;
    if (own == OpPattern::OutEWiseFusable) {
      if (phase != 0 || way != OpPattern::ElemWise) return;
      const auto fits = [](OpPattern kind, bool) { return kind <= OpPattern::Broadcast; };
      if (all_on_path(node, sink, fits)) commit(node, sink);
    } else if (own <= OpPattern::Broadcast) {
      if (way > OpPattern::Injective && way != OpPattern::CommReduce) return;
      const auto fits = [](OpPattern kind, bool is_sink) {
        return kind <= (is_sink ? OpPattern::OutEWiseFusable : OpPattern::Injective);
      };
      if (all_on_path(node, sink, fits)) commit(node, sink);
    } else if (own == OpPattern::Injective || own == OpPattern::Tuple) {
      if (phase == 1 && all_on_path(node, sink, is_injective)) commit(node, sink);
    }
  }

  static bool is_injective(OpPattern kind, bool) { return kind <= OpPattern::Injective; }

  void consider_tuple(std::uint32_t node, std::uint32_t sink) {
    if (records_[node].pattern > OpPattern::Injective) return;
    const OpPattern joined = records_[root(sink)].pattern;
    if (records_[sink].pattern != OpPattern::Tuple || joined > OpPattern::Injective) return;
    if (all_on_path(node, sink, is_injective)) commit(node, sink);
  }

  // Adds up each expression's own count, except the root's count for the sink.
  bool is_too_deep(std::uint32_t node, std::uint32_t sink) {
    std::size_t count = records_[root(sink)].count;
    return !walk(node, sink, [&](std::uint32_t at) {
      if (at != sink) count += records_[at].count;
      return count <= max_depth_;
    });
  }

  template <class Fits>
  bool all_on_path(std::uint32_t node, std::uint32_t sink, const Fits& fits) {
    return walk(node, sink, [&](std::uint32_t at) {
      return at == node || fits(records_[root(at)].pattern, at == sink);
    });
  }

  void commit(std::uint32_t node, std::uint32_t sink) {
    walk(node, sink, [&](std::uint32_t at) {
      if (at != sink) merge(at, sink);
      return true;
    });
  }

  void merge(std::uint32_t from, std::uint32_t to) {
    const std::uint32_t child = root(from), parent = root(to);
    if (child == parent) return;
    Record &gone = records_[child], &kept = records_[parent];
    kept.count += gone.count;
    gone.parent = parent;
    if (!gone.has_anchor) return;
    TENON_ASSERT(!kept.has_anchor, "a group has one anchor");
    kept.has_anchor = true;
    kept.pattern = std::max(kept.pattern, gone.pattern);
  }

  // Visits every expression on a path from `node` to `sink`, both included, until `visit` returns
  // false.
  template <class Visit>
  bool walk(std::uint32_t node, std::uint32_t sink, const Visit& visit) {
    std::vector<std::uint32_t> open = {node};
    std::unordered_set<std::uint32_t> seen = {node};
    while (!open.empty()) {
      const std::uint32_t at = open.back();
      open.pop_back();
      if (!visit(at)) return false;
      if (at == sink) continue;
      for (const RelayGraph::Edge& edge : graph_.expressions[at].consumers) {
        if (seen.insert(edge.consumer).second) open.push_back(edge.consumer);
      }
    }
    return true;
  }

  const RelayGraph& graph_;
  std::vector<PostDominator> tree_;
  std::size_t max_depth_;
  std::vector<Record> records_;
};

}  // namespace

Grouping relay_groups(const Graph& graph, std::size_t max_depth, Remarks* remarks) {
  const RelayGraph expressions = relay_graph(graph);
  RelayPartition partition(expressions, max_depth);
  partition.run();
  constexpr std::uint32_t kAlone = 0xffffffff;
  IdMap<NodeId, std::uint32_t> root_of(graph.node_id_bound(), kAlone);
  for (std::uint32_t k = 0; k < expressions.expressions.size(); ++k) {
    const NodeId node = expressions.expressions[k].node;
    const bool is_constant = node && graph.node(node).operands.empty();
    if (node && !is_constant) root_of[node] = partition.root(k);
  }
  // A group's only result is that of its last node, so that the group can run at that node's
  // position.
  std::vector<std::vector<NodeId>> members(expressions.expressions.size());
  IdMap<NodeId, std::uint32_t> positions(graph.node_id_bound());
  std::uint32_t position = 0;
  Grouping grouping;
  for (NodeId id : graph.nodes_in_order()) {
    positions[id] = position++;
    if (root_of[id] != kAlone) {
      members[root_of[id]].push_back(id);
    } else {
      grouping.groups.push_back({{id}, {}});
    }
  }
  for (std::vector<NodeId>& nodes : members) {
    if (nodes.empty()) continue;
    if (remarks && nodes.size() > 1) {
      const std::string last = graph.value(graph.node(nodes.back()).results.front()).name;
      for (NodeId id : nodes) {
        remarks->say(graph.value(graph.node(id).results.front()).name, "fuse",
                     concat("in the group of '", last, "' by Relay's rule"));
      }
    }
    grouping.groups.push_back({std::move(nodes), {}});
  }
  std::ranges::sort(grouping.groups, {},
                    [&](const Grouping::Group& group) { return positions[group.nodes.back()]; });
  return grouping;
}

}  // namespace tenon::passes::fusing
