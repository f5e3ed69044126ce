#include "passes/fuse/planner.h"

#include "passes/fuse/rules.h"
#include "passes/fuse/verdicts.h"

#include <algorithm>
#include <deque>
#include <functional>

namespace tenon::passes::fusing {
namespace {

// Further siblings gain little: the shared input is in a cache by then.
constexpr std::size_t kMaxSiblings = 8;

class Planner {
 public:
  Planner(const Graph& graph, const TargetFacts& target, std::size_t max_nodes)
      : graph_(graph), rules_(graph, target, max_nodes), keeps_tiles_(target.keeps_tiles) {
    places_ = IdMap<NodeId, std::size_t>(graph.node_id_bound(), 0);
    for (NodeId id : graph.nodes_in_order()) {
      places_[id] = order_.size();
      order_.push_back(id);
    }
  }

  Grouping plan(Remarks* remarks) {
    for (NodeId id : order_) join_widened(id);
    for (NodeId id : order_) join_deferred(id);
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
    if (remarks) report_verdicts(rules_, *remarks);
    return grouping();
  }

 private:
  // Contractions in reverse topological depth. If an add joins two contractions, the one further
  // from the inputs takes it as epilogue: the result of the other one has to wait anyway, and that
  // one stays free to run together with its siblings.
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

  // Fuses elementwise widening nodes into their reader: a wide intermediate would take more memory
  // than the narrow source.
  void join_widened(NodeId id) {
    const Node& start = graph_.node(id);
    if (rules_.access(id).role != Role::Pointwise || start.operands.empty() || !start.operands[0])
      return;
    const Type& narrow = graph_.value(start.operands[0]).type;
    if (!narrow.is_tensor() || rules_.access(id).operands[0] != Access::Aligned) return;
    const std::size_t bytes = info(narrow.tensor().dtype).storage_bytes;
    while (const NodeId reader = only_pointwise_reader(id, bytes)) {
      const ClusterId own = rules_.clusters.of(id), other = rules_.clusters.of(reader);
      if (own != other && (rules_.refusal(own, other) || !rules_.merge(own, other))) return;
      id = reader;
    }
  }

  // Returns the only reader of a node whose elements have more than that many bytes, if it is
  // pointwise.
  NodeId only_pointwise_reader(NodeId id, std::size_t bytes) const {
    const Node& node = graph_.node(id);
    if (node.results.size() != 1 || graph_.is_output(node.results[0])) return {};
    const Type& type = graph_.value(node.results[0]).type;
    const std::vector<NodeId>& readers = graph_.readers(node.results[0]);
    if (!type.is_tensor() || info(type.tensor().dtype).storage_bytes <= bytes ||
        readers.size() != 1)
      return {};
    return rules_.access(readers[0]).role == Role::Pointwise ? readers[0] : NodeId{};
  }

  // Rematerializes elementwise values at a late reader if their source stays alive until then
  // anyway, such as the derivative of an activation whose result a weight gradient reads. Fused
  // into the producer instead, the value would occupy memory until then.
  void join_deferred(NodeId reader) {
    if (rules_.access(reader).role != Role::Pointwise) return;
    const std::vector<ValueId> operands = graph_.node(reader).operands;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (!operands[k] || rules_.access(reader).operands[k] != Access::Aligned) continue;
      const std::vector<NodeId> nodes = nodes_made_for(operands[k], reader);
      if (nodes.empty() || !is_better_late(nodes, reader)) continue;
      for (NodeId id : nodes) {
        const ClusterId own = rules_.clusters.of(id), other = rules_.clusters.of(reader);
        if (own != other && (rules_.refusal(own, other) || !rules_.merge(own, other))) break;
      }
    }
  }

  // Returns the elementwise nodes that compute a value only for `reader`, consumers before
  // producers.
  std::vector<NodeId> nodes_made_for(ValueId value, NodeId reader) const {
    std::vector<NodeId> nodes;
    const auto take = [&](ValueId operand) {
      const NodeId id = operand ? graph_.value(operand).producer : NodeId{};
      if (!id || is_constant(id) || rules_.access(id).role != Role::Pointwise) return;
      if (graph_.node(id).results.size() != 1 || graph_.is_output(operand)) return;
      const bool is_inside = std::ranges::all_of(graph_.readers(operand), [&](NodeId other) {
        return other == reader || std::ranges::find(nodes, other) != nodes.end();
      });
      if (is_inside && std::ranges::find(nodes, id) == nodes.end()) nodes.push_back(id);
    };
    take(value);
    for (std::size_t k = 0; k < nodes.size() && nodes.size() <= kMaxDeferred; ++k) {
      for (ValueId operand : graph_.node(nodes[k]).operands) take(operand);
    }
    if (nodes.size() > kMaxDeferred) nodes.clear();
    return nodes;
  }

  // Compares bytes times lifetime in nodes: of the result if it is computed early, and of its
  // sources, as far as no other reader keeps them alive.
  bool is_better_late(std::span<const NodeId> nodes, NodeId reader) const {
    const std::size_t until = places_[reader];
    std::size_t earliest = 0;
    double kept_longer = 0;
    std::vector<ValueId> seen;
    for (NodeId id : nodes) {
      for (ValueId operand : graph_.node(id).operands) {
        const NodeId producer = operand ? graph_.value(operand).producer : NodeId{};
        if (!producer || is_constant(producer)) continue;
        if (std::ranges::find(nodes, producer) != nodes.end()) continue;
        if (std::ranges::find(seen, operand) != seen.end()) continue;
        seen.push_back(operand);
        if (graph_.readers(operand).size() > kMaxDeferred) return false;
        earliest = std::max(earliest, places_[producer]);
        const std::size_t last = last_use(operand, nodes);
        kept_longer += rules_.bytes(operand) * static_cast<double>(until - std::min(until, last));
      }
    }
    const double kept = rules_.bytes(graph_.node(nodes.front()).results.front()) *
                        static_cast<double>(until - earliest);
    return 2 * kept_longer < kept;
  }

  // Returns the position of the value's last reader other than `nodes`. Follows index maps, whose
  // readers will probably read through them.
  std::size_t last_use(ValueId value, std::span<const NodeId> nodes) const {
    std::size_t last = places_[graph_.value(value).producer];
    std::vector<ValueId> open = {value};
    for (std::size_t k = 0; k < open.size() && k < kMaxDeferred; ++k) {
      if (graph_.is_output(open[k])) return order_.size();
      for (NodeId reader : graph_.readers(open[k])) {
        if (std::ranges::find(nodes, reader) != nodes.end()) continue;
        last = std::max(last, places_[reader]);
        if (rules_.access(reader).role != Role::Move) continue;
        for (ValueId result : graph_.node(reader).results) {
          if (result && graph_.readers(result).size() <= kMaxDeferred) open.push_back(result);
        }
      }
    }
    return last;
  }

  // Fuses the cluster's readers, and theirs, as long as they fit.
  void take_readers(NodeId start) {
    std::deque<NodeId> open = {start};
    while (!open.empty()) {
      const NodeId id = open.front();
      open.pop_front();
      for (ValueId result : graph_.node(id).results) {
        if (!result) continue;
        ClusterId refused;  // one reader may read it several times
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

  // Tile-and-fuse of anchor pairs, in the order of their gain, since a kernel holds two anchors.
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
        pairs.push_back({rules_.anchor_node(producer), id,
                         rules_.tile_and_fuse_verdict(producer, reader).gain});
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

  // Horizontal fusion: merges clusters that read one value. Skips values with many readers, since
  // kernels hold few siblings.
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
    // Each reader tries only the few before it, which keeps the time linear.
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

  // Duplicates an index map into each of its readers: each computes its own indices, without a copy
  // of the data.
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

  // Returns the first node of each cluster that reads this one.
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

  // Each index map on the path makes every read more expensive.
  static constexpr std::size_t kMaxCopies = 8;
  // Limit on nodes visited per operand, and on readers of a value.
  static constexpr std::size_t kMaxDeferred = 16;

  const Graph& graph_;
  Rules rules_;
  bool keeps_tiles_;
  std::vector<NodeId> order_;
  IdMap<NodeId, std::size_t> places_;  // in `order_`
};

}  // namespace

Grouping plan_groups(const Graph& graph, const TargetFacts& target, std::size_t max_nodes,
                     Remarks* remarks) {
  return Planner(graph, target, max_nodes).plan(remarks);
}

}  // namespace tenon::passes::fusing
