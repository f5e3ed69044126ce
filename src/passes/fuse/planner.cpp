#include "passes/fuse/planner.h"

#include "passes/fuse/rules.h"
#include "passes/fuse/verdicts.h"

#include <algorithm>
#include <deque>
#include <functional>

namespace tenon::fusing {
namespace {

// A kernel of more siblings gains little: the input is read from a cache by then.
constexpr std::size_t kMaxSiblings = 8;

class Planner {
 public:
  Planner(const Graph& graph, const TargetFacts& target, std::size_t max_nodes)
      : graph_(graph), rules_(graph, target, max_nodes), keeps_tiles_(target.keeps_tiles) {
    for (NodeId id : graph.nodes_in_order()) order_.push_back(id);
  }

  Grouping plan(Journal* journal) {
    for (NodeId id : order_) join_widened(id);
    for (NodeId id : contractions_from_the_end()) take_readers(id);
    for (NodeId id : order_) {
      if (rules_.access(id).role == Role::Rows) take_operands(id), take_readers(id);
    }
    for (NodeId id : order_) {
      if (rules_.access(id).role == Role::Windows) take_readers(id);
    }
    for (NodeId id : order_) join_operands(id);
    join_siblings(Role::Rows);
    join_siblings(Role::Pointwise);
    if (keeps_tiles_) join_siblings(Role::Contraction);
    spread_views();
    for (NodeId id : order_) join_operands(id);
    if (keeps_tiles_) join_tiles();
    if (journal) tell(rules_, *journal);
    return grouping();
  }

 private:
  // Where two contractions meet in an add, the one further from the inputs takes it: the other's
  // result waits for it anyway, and stays free to run beside its siblings.
  std::vector<NodeId> contractions_from_the_end() const {
    IdMap<NodeId, std::uint32_t> depth(graph_.node_id_bound(), 0);
    std::vector<NodeId> found;
    for (NodeId id : order_) {
      for (ValueId operand : graph_.node(id).operands) {
        const NodeId producer = operand ? graph_.value(operand).producer : NodeId{};
        if (producer) depth[id] = std::max(depth[id], depth[producer] + 1);
      }
      if (rules_.access(id).role == Role::Contraction) found.push_back(id);
    }
    std::ranges::reverse(found);
    std::ranges::stable_sort(found, std::greater{}, [&](NodeId id) { return depth[id]; });
    return found;
  }

  // What is made of narrow elements one by one belongs to what reads it, as far as it is wide: in between it
  // would take more memory than what it is made of.
  void join_widened(NodeId id) {
    const Node& start = graph_.node(id);
    if (rules_.access(id).role != Role::Pointwise || start.operands.empty() || !start.operands[0]) return;
    const Type& narrow = graph_.value(start.operands[0]).type;
    if (!narrow.is_tensor() || rules_.access(id).operands[0] != Access::Aligned) return;
    const std::size_t bytes = info(narrow.tensor().dtype).storage_bytes;
    while (const NodeId reader = only_pointwise_reader(id, bytes)) {
      const ClusterId own = rules_.clusters.of(id), other = rules_.clusters.of(reader);
      if (own != other && (rules_.refusal(own, other) || !rules_.merge(own, other))) return;
      id = reader;
    }
  }

  // Of a node that gives wider elements than so many bytes.
  NodeId only_pointwise_reader(NodeId id, std::size_t bytes) const {
    const Node& node = graph_.node(id);
    if (node.results.size() != 1 || graph_.is_output(node.results[0])) return {};
    const Type& type = graph_.value(node.results[0]).type;
    const std::vector<NodeId>& readers = graph_.readers(node.results[0]);
    if (!type.is_tensor() || info(type.tensor().dtype).storage_bytes <= bytes || readers.size() != 1) return {};
    return rules_.access(readers[0]).role == Role::Pointwise ? readers[0] : NodeId{};
  }

  // Joins the cluster's readers, and theirs, for as long as they fit.
  void take_readers(NodeId start) {
    std::deque<NodeId> open = {start};
    while (!open.empty()) {
      const NodeId id = open.front();
      open.pop_front();
      for (ValueId result : graph_.node(id).results) {
        if (!result) continue;
        ClusterId refused;  // one reader may read it many times
        for (NodeId reader : graph_.readers(result)) {
          const ClusterId own = rules_.clusters.of(id), other = rules_.clusters.of(reader);
          if (own == other || other == refused) continue;
          if (rules_.refusal(own, other)) {
            refused = other;
            continue;
          }
          const std::vector<NodeId> joined = members(other);
          if (rules_.merge(own, other)) {
            open.insert(open.end(), joined.begin(), joined.end());
          } else {
            refused = other;
          }
        }
      }
    }
  }

  void take_operands(NodeId start) {
    std::deque<NodeId> open = {start};
    while (!open.empty()) {
      const NodeId id = open.front();
      open.pop_front();
      ClusterId refused;
      for (ValueId operand : graph_.node(id).operands) {
        const ClusterId other = operand ? rules_.clusters.maker(operand) : ClusterId{};
        const ClusterId own = rules_.clusters.of(id);
        if (!other || own == other || other == refused) continue;
        const std::vector<NodeId> joined = members(other);
        if (!rules_.refusal(other, own) && rules_.merge(other, own)) {
          open.insert(open.end(), joined.begin(), joined.end());
        } else {
          refused = other;
        }
      }
    }
  }

  void join_operands(NodeId id) {
    ClusterId refused;
    for (ValueId operand : graph_.node(id).operands) {
      const ClusterId other = operand ? rules_.clusters.maker(operand) : ClusterId{};
      const ClusterId own = rules_.clusters.of(id);
      if (!other || own == other || other == refused) continue;
      if (rules_.refusal(other, own) || !rules_.merge(other, own)) refused = other;
    }
  }

  // Anchors that hand each other a value: those that gain most first, since a kernel holds two.
  void join_tiles() {
    struct Pair {
      NodeId producer, reader;
      double gain;
    };
    std::vector<Pair> pairs;
    rules_.allow_tile_and_fuse();
    for (NodeId id : order_) {
      const ClusterId reader = rules_.clusters.of(id);
      if (rules_.anchor_node(reader) != id) continue;
      for (ValueId operand : graph_.node(id).operands) {
        const ClusterId producer = operand ? rules_.clusters.maker(operand) : ClusterId{};
        if (!producer || producer == reader || !rules_.anchor_node(producer)) continue;
        if (rules_.refusal(producer, reader)) continue;
        pairs.push_back({rules_.anchor_node(producer), id, rules_.tile_and_fuse_verdict(producer, reader).gain});
      }
    }
    std::ranges::stable_sort(pairs, std::greater{}, &Pair::gain);
    for (const Pair& pair : pairs) {
      const ClusterId a = rules_.clusters.of(pair.producer), b = rules_.clusters.of(pair.reader);
      if (a != b && !rules_.refusal(a, b)) rules_.merge(a, b);
    }
  }

  std::vector<NodeId> members(ClusterId cluster) const {
    const auto nodes = rules_.clusters.nodes(cluster);
    return {nodes.begin(), nodes.end()};
  }

  // Clusters that read one value side by side. What many read is left alone: kernels hold few.
  void join_siblings(Role role) {
    const auto has_role = [&](NodeId id) { return rules_.anchor(rules_.clusters.of(id)) == role; };
    if (std::ranges::none_of(order_, has_role)) return;
    for (ValueId input : graph_.inputs()) join_readers(input, role);
    for (NodeId id : order_) {
      if (is_constant(id)) continue;
      for (ValueId result : graph_.node(id).results) {
        if (result) join_readers(result, role);
      }
    }
  }

  bool is_constant(NodeId id) const {
    const Node& node = graph_.node(id);
    return !node.results.empty() && node.results.front() &&
           graph_.constant_of(node.results.front());
  }

  void join_readers(ValueId value, Role role) {
    std::vector<NodeId> readers;
    for (NodeId reader : graph_.readers(value)) {
      const ClusterId cluster = rules_.clusters.of(reader);
      if (rules_.anchor(cluster) != role || !rules_.may_join_others(cluster)) continue;
      const bool is_anchor = role == Role::Pointwise || rules_.anchor_node(cluster) == reader;
      if (is_anchor) readers.push_back(reader);
    }
    std::ranges::sort(readers, {}, [&](NodeId id) { return rules_.clusters.position(id); });
    // Each tries the few before it, so that many readers do not cost their square.
    for (std::size_t k = 1; k < readers.size(); ++k) {
      const std::size_t first = k > kMaxSiblings ? k - kMaxSiblings : 0;
      for (std::size_t j = first; j < k; ++j) {
        const ClusterId a = rules_.clusters.of(readers[j]), b = rules_.clusters.of(readers[k]);
        if (a == b) break;
        if (role == Role::Contraction && sibling_count(a) + sibling_count(b) > kMaxSiblings)
          continue;
        if (role == Role::Pointwise && !both_aligned(readers[j], readers[k], value)) continue;
        if (!rules_.sibling_refusal(a, b, value) && rules_.merge(a, b)) break;
      }
    }
  }

  std::size_t sibling_count(ClusterId cluster) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        rules_.clusters.nodes(cluster),
        [&](NodeId id) { return rules_.access(id).role == Role::Contraction; }));
  }

  bool both_aligned(NodeId a, NodeId b, ValueId value) const {
    const auto is_aligned = [&](NodeId id) {
      const Node& node = graph_.node(id);
      for (std::size_t k = 0; k < node.operands.size(); ++k) {
        if (node.operands[k] == value && rules_.access(id).operands[k] != Access::Aligned)
          return false;
      }
      return true;
    };
    return is_aligned(a) && is_aligned(b);
  }

  // An index map that several read: each computes its own places, and nothing is copied.
  void spread_views() {
    for (ClusterId view : rules_.clusters.in_order()) {
      if (!rules_.is_view(view) || !rules_.may_join_others(view)) continue;
      const std::vector<NodeId> readers = first_readers(view);
      std::vector<NodeId> own = members(view);
      for (const std::vector<NodeId> at_own = own; NodeId id : at_own) {
        const std::vector<NodeId>& through = rules_.copies(id);
        own.insert(own.end(), through.begin(), through.end());
      }
      const bool is_refused = std::ranges::any_of(readers, [&](NodeId reader) {
        return rules_.copy_refusal(view, rules_.clusters.of(reader)) ||
               rules_.copies(reader).size() + own.size() > kMaxCopies;
      });
      if (is_refused || readers.empty()) continue;
      for (NodeId reader : readers) rules_.copy(own, reader);
      rules_.dissolve(view);
    }
    rules_.write_views();
  }

  // The first node of each cluster that reads this one.
  std::vector<NodeId> first_readers(ClusterId cluster) const {
    std::vector<NodeId> readers;
    for (NodeId id : rules_.clusters.nodes(cluster)) {
      for (ValueId result : graph_.node(id).results) {
        if (!result) continue;
        for (NodeId reader : graph_.readers(result)) {
          const ClusterId other = rules_.clusters.of(reader);
          if (other != cluster) readers.push_back(rules_.clusters.nodes(other).front());
        }
      }
    }
    std::ranges::sort(readers);
    const auto rest = std::ranges::unique(readers);
    readers.erase(rest.begin(), rest.end());
    return readers;
  }

  Grouping grouping() {
    Grouping grouping;
    for (ClusterId cluster : rules_.clusters.in_order()) {
      if (!rules_.is_dissolved(cluster)) {
        grouping.groups.push_back({members(cluster), rules_.copies_in(cluster)});
      }
    }
    return grouping;
  }

  // Each index map on the way makes every read dearer.
  static constexpr std::size_t kMaxCopies = 8;

  const Graph& graph_;
  Rules rules_;
  bool keeps_tiles_;
  std::vector<NodeId> order_;
};

}  // namespace

Grouping plan_groups(const Graph& graph, const TargetFacts& target, std::size_t max_nodes, Journal* journal) {
  return Planner(graph, target, max_nodes).plan(journal);
}

}  // namespace tenon::fusing
