#include "passes/choose_layouts/assignment.h"

#include "expr/access.h"
#include "ops/families/window.h"
#include "passes/choose_layouts/min_cut.h"

#include <algorithm>
#include <optional>

namespace tenon::passes::layouts {
namespace {

// Cost of a view: moves no byte but is still a node. Breaks ties against useless changes.
constexpr double kViewBytes = 64;
constexpr double kMostBytes = 1e15;
// Penalty for a transpose back that separates a node from a kernel it could fuse into. On a tie the
// transpose comes after both nodes.
constexpr double kSeparationBytes = 1024;
// A larger constant may be seeded weights that were never materialized.
constexpr std::int64_t kMostMovedElements = std::int64_t{1} << 24;

std::int64_t capacity(double bytes) {
  return static_cast<std::int64_t>(std::clamp(bytes, 0.0, kMostBytes));
}

const TensorType* image_type(const Graph& graph, ValueId value) {
  if (!value || !graph.value(value).type.is_tensor()) return nullptr;
  const TensorType& type = graph.value(value).type.tensor();
  return Forms::has_rank(type.rank()) ? &type : nullptr;
}

// Returns the cost of running the node on the layout that it does not prefer.
double loss_of(const LayoutProblem& problem, NodeId id, const IdMap<NodeId, NodeAccess>& access) {
  const Graph& graph = problem.graph;
  const Node& node = graph.node(id);
  if (node.op->layout.kind == LayoutRule::Kind::Prefers) {
    return problem.lost_bytes_per_flop * access[id].flops;
  }
  if (node.op->layout.kind != LayoutRule::Kind::Any || !takes_windows(*node.op)) return 0;
  double bytes = 0;  // windowed reductions load whole vectors of channels
  for (ValueId operand : node.operands) {
    if (operand) bytes += size_hint_bytes(graph.value(operand).type);
  }
  return bytes;
}

class CostCut {
 public:
  explicit CostCut(const LayoutProblem& problem) : problem_(problem), graph_(problem.graph) {}

  LayoutAssignment solve() {
    if (!has_preferences()) return {};
    add_nodes();
    for (NodeId id : graph_.nodes_in_order()) {
      for (ValueId result : graph_.node(id).results) {
        if (result) add_value(result);
      }
    }
    for (ValueId input : graph_.inputs()) add_value(input);
    const std::vector<bool> is_moved = cut_.solve();
    for (NodeId id : graph_.nodes_in_order()) {
      if (!problem_.roles[id].can_move() || !is_moved[node_of_[id]]) continue;
      choice_.moves[id] = 1;
      choice_.is_empty = false;
    }
    return std::move(choice_);
  }

 private:
  using Index = MinCut::Index;

  bool has_preferences() const {
    for (NodeId id : graph_.nodes_in_order()) {
      const LayoutRoles& roles = problem_.roles[id];
      if (roles.can_move() && graph_.node(id).op->layout.kind == LayoutRule::Kind::Prefers) {
        return true;
      }
    }
    return false;
  }

  // Nodes on the source side keep their layout, nodes on the sink side change it.
  void add_nodes() {
    const IdMap<NodeId, NodeAccess> access = access_of_nodes(graph_);
    for (NodeId id : graph_.nodes_in_order()) {
      const LayoutRoles& roles = problem_.roles[id];
      Index at = MinCut::source;
      if (roles.kind == LayoutRoles::Kind::Gives || roles.kind == LayoutRoles::Kind::Takes)
        at = MinCut::sink;
      if (roles.can_move()) {
        at = cut_.add_node();
        const double loss = loss_of(problem_, id, access);
        choice_.saved_bytes[id] = loss;
        cut_.add_arc(at, MinCut::sink, capacity(loss));
        cut_.add_arc(MinCut::source, at, capacity(cost_of_moving(id)));
      }
      node_of_[id] = at;
      const std::vector<ValueId>& operands = graph_.node(id).operands;
      for (std::size_t k = 0; k < operands.size(); ++k) {
        if (roles.operands[k] == ImageRole::Inner) {
          const Index other = node_of_[graph_.value(operands[k]).producer];
          cut_.add_arc(other, at, MinCut::infinite);
          cut_.add_arc(at, other, MinCut::infinite);
          continue;
        }
        if (!image_type(graph_, operands[k])) continue;
        readers_[operands[k]].push_back(roles.operands[k] == ImageRole::Image ? at
                                                                              : MinCut::source);
        if (roles.can_move() && may_join(graph_.node(id))) is_joined_[operands[k]] = 1;
      }
    }
  }

  static bool may_join(const Node& node) {
    return node.op->layout.kind == LayoutRule::Kind::Derived ||
           node.op->layout.kind == LayoutRule::Kind::FollowsAxis;
  }

  // Broadcast operands are converted one at a time.
  double cost_of_moving(NodeId id) const {
    const Node& node = graph_.node(id);
    const LayoutRoles& roles = problem_.roles[id];
    double bytes = 0;
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      if (roles.operands[k] != ImageRole::Broadcast || free_constant(graph_, node.operands[k]))
        continue;
      const TensorType& type = graph_.value(node.operands[k]).type.tensor();
      const std::size_t rank = graph_.value(node.results[0]).type.tensor().rank();
      bytes +=
          conversion_bytes({type.dtype, widened(type.dims, rank), {}}, problem_.forms.perm(rank));
    }
    return bytes;
  }

  void add_value(ValueId value) {
    const TensorType* type = image_type(graph_, value);
    if (!type || free_constant(graph_, value)) return;
    Index made = MinCut::source;
    if (const NodeId producer = graph_.value(value).producer) {
      const std::vector<ValueId>& results = graph_.node(producer).results;
      const auto place =
          static_cast<std::size_t>(std::ranges::find(results, value) - results.begin());
      if (problem_.roles[producer].results[place] == ImageRole::Inner) return;
      if (problem_.roles[producer].results[place] == ImageRole::Image) made = node_of_[producer];
    }
    std::vector<Index>& readers = readers_[value];
    if (graph_.is_output(value)) readers.push_back(MinCut::source);
    std::ranges::sort(readers);
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    const double bytes = conversion_bytes(*type, problem_.forms.perm(type->rank()));
    const std::int64_t cost = capacity(bytes);
    const std::int64_t cost_back =
        capacity(bytes + (is_joined_[value] != 0 ? kSeparationBytes : 0));
    // One conversion to the new layout serves all moved readers.
    join(
        readers, MinCut::source, [&](Index reader) { cut_.add_arc(made, reader, cost); },
        [&](Index joint) { cut_.add_arc(made, joint, cost); },
        [&](Index joint, Index reader) { cut_.add_arc(joint, reader, MinCut::infinite); });
    // One conversion back serves all other readers.
    join(
        readers, MinCut::sink, [&](Index reader) { cut_.add_arc(reader, made, cost_back); },
        [&](Index joint) { cut_.add_arc(joint, made, cost_back); },
        [&](Index joint, Index reader) { cut_.add_arc(reader, joint, MinCut::infinite); });
  }

  // Adds a joint node for all readers except `without`, unless there is only one.
  template <class Direct, class Joint, class Reader>
  void join(const std::vector<Index>& readers, Index without, Direct direct, Joint add_joint,
            Reader add_reader) {
    const auto count = std::ranges::count_if(readers, [&](Index at) { return at != without; });
    const Index other = without == MinCut::source ? MinCut::sink : MinCut::source;
    if (count == 0) return;
    // A reader that is fixed to the other side decides for all.
    if (std::ranges::find(readers, other) != readers.end()) return direct(other);
    std::optional<Index> joint;
    if (count > 1) add_joint(*(joint = cut_.add_node()));
    for (const Index reader : readers) {
      if (reader == without) continue;
      if (joint) {
        add_reader(*joint, reader);
      } else {
        direct(reader);
      }
    }
  }

  const LayoutProblem& problem_;
  const Graph& graph_;
  MinCut cut_;
  LayoutAssignment choice_;
  IdMap<NodeId, Index> node_of_;
  IdMap<ValueId, std::vector<Index>> readers_;
  IdMap<ValueId, std::uint8_t> is_joined_;  // 1: a reader may fuse into the producer's kernel
};

}  // namespace

LayoutProblem::LayoutProblem(const Graph& about, const Forms& between, double lost)
    : graph(about), forms(between), roles(about.node_id_bound()), lost_bytes_per_flop(lost) {
  for (NodeId id : graph.nodes_in_order()) roles[id] = roles_of(graph, id, forms);
}

const Constant* free_constant(const Graph& graph, ValueId value) {
  const Constant* constant = graph.constant_of(value);
  if (!constant || constant->kind() == Constant::Kind::Splat) return constant;
  return constant->size() <= kMostMovedElements ? constant : nullptr;
}

double conversion_bytes(const TensorType& type, const Axes& perm) {
  if (keeps_elements_in_place(type.dims, perm)) return kViewBytes;
  return 2 * size_hint_bytes(Type(type));
}

LayoutAssignment cheapest(const LayoutProblem& problem) { return CostCut(problem).solve(); }

}  // namespace tenon::passes::layouts
