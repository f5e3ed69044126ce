#include "distributed/stages.h"

#include "base/error.h"
#include "ops/families/collective.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace tenon::distributed {
namespace {

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

class Cutter {
 public:
  Cutter(const Graph& graph, std::int64_t tensor_ranks)
      : graph_(graph),
        tensor_ranks_(tensor_ranks),
        earliest_(graph.node_id_bound(), 0),
        stage_(graph.node_id_bound(), kNever),
        is_after_(graph.node_id_bound(), 0) {
    find_stages();
  }

  std::vector<StepStage> cut() {
    std::vector<StepStage> stages;
    for (std::size_t k = 0; k <= last_; ++k) stages.push_back(stage(k));
    return stages;
  }

 private:
  bool is_constant(NodeId id) const {
    const Node& node = graph_.node(id);
    return node.results.size() == 1 && graph_.constant_of(node.results.front()) != nullptr;
  }
  bool is_collective_node(NodeId id) const { return is_collective(*graph_.node(id).op); }

  // A collective belongs to the stage that it follows; its readers belong to later stages.
  void find_stages() {
    std::vector<NodeId> order;
    for (NodeId id : graph_.nodes_in_order()) {
      if (is_constant(id)) continue;
      order.push_back(id);
      find_earliest(id, 0);
      if (!is_after_[id]) last_of_micro_batch_ = std::max(last_of_micro_batch_, earliest_[id]);
    }
    for (NodeId id : order) {
      find_earliest(id, last_of_micro_batch_ + 1);
      last_ = std::max(last_, earliest_[id]);
    }
    for (auto id = order.rbegin(); id != order.rend(); ++id) {
      if (is_collective_node(*id)) {
        stage_[*id] = earliest_[*id];
        continue;
      }
      for (ValueId result : graph_.node(*id).results) {
        if (!result) continue;
        if (graph_.is_output(result)) stage_[*id] = earliest_[*id];
        for (NodeId reader : graph_.readers(result)) {
          stage_[*id] = std::min(stage_[*id], stage_[reader]);
        }
      }
      if (stage_[*id] == kNever) stage_[*id] = earliest_[*id];
    }
  }

  // Computes the earliest stage of a node: at least `behind` if it depends on a sum over parts.
  void find_earliest(NodeId id, std::size_t after) {
    for (ValueId operand : graph_.node(id).operands) {
      const NodeId maker = operand ? graph_.value(operand).producer : NodeId{};
      if (!maker || is_constant(maker)) continue;
      const bool is_cut = is_collective_node(maker) && !is_state_gather(graph_, maker);
      earliest_[id] = std::max(earliest_[id], earliest_[maker] + (is_cut ? 1 : 0));
      const bool is_sum =
          is_collective_node(maker) && is_gradient_reduction(graph_, maker, tensor_ranks_);
      if (is_after_[maker] || is_sum) is_after_[id] = 1;
    }
    if (is_after_[id]) earliest_[id] = std::max(earliest_[id], after);
  }

  bool is_needed_outside(ValueId value, std::size_t stage) const {
    if (graph_.is_output(value)) return true;
    return std::ranges::any_of(graph_.readers(value), [&](NodeId reader) {
      return is_collective_node(reader) || stage_[reader] != stage;
    });
  }

  StepStage stage(std::size_t number) const {
    StepStage made;
    made.graph.name = graph_.name;
    made.follows_reductions = number > last_of_micro_batch_;
    std::unordered_map<ValueId, ValueId> copies;
    std::vector<NodeId> nodes;
    for (NodeId id : graph_.nodes_in_order()) {
      if (is_constant(id) || stage_[id] != number) continue;
      (is_collective_node(id) ? made.collectives : nodes).push_back(id);
    }
    for (NodeId id : nodes) {
      for (ValueId operand : graph_.node(id).operands) {
        if (!operand || copies.contains(operand) || graph_.constant_of(operand)) continue;
        const Value& value = graph_.value(operand);
        const bool is_inside = value.producer && stage_[value.producer] == number &&
                               !is_collective_node(value.producer);
        if (is_inside) continue;
        copies[operand] = made.graph.add_input(value.name, value.type);
        made.inputs.push_back(operand);
      }
    }
    for (NodeId id : nodes) copy_node(id, made.graph, copies);
    for (NodeId id : nodes) {
      for (ValueId result : graph_.node(id).results) {
        if (!result || !is_needed_outside(result, number)) continue;
        made.graph.add_output(copies.at(result));
        made.outputs.push_back(result);
      }
    }
    return made;
  }

  void copy_node(NodeId id, Graph& to, std::unordered_map<ValueId, ValueId>& copies) const {
    const Node& node = graph_.node(id);
    Graph::NewNode copy{node.op, {}, node.attrs, node.bodies, {}, node.name};
    for (ValueId operand : node.operands) {
      if (operand && !copies.contains(operand)) {
        const Value& value = graph_.value(operand);
        const Constant* constant = graph_.constant_of(operand);
        TENON_ASSERT(constant != nullptr, "a stage has what its nodes read");
        const ValueId made =
            to.add_constant(*graph_.node(value.producer).op, *constant, value.name);
        if (graph_.has_stated_type(operand)) to.set_type(made, value.type);
        copies[operand] = made;
      }
      copy.operands.push_back(operand ? copies.at(operand) : ValueId{});
    }
    for (ValueId result : node.results)
      copy.results.push_back(result ? graph_.value(result).name : "_");
    const NodeId made = to.add_node(std::move(copy));
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      if (!node.results[k]) continue;
      copies[node.results[k]] = to.node(made).results[k];
      if (graph_.has_stated_type(node.results[k]))
        to.set_type(to.node(made).results[k], graph_.value(node.results[k]).type);
    }
  }

  const Graph& graph_;
  std::int64_t tensor_ranks_;
  IdMap<NodeId, std::size_t> earliest_, stage_;
  IdMap<NodeId, char> is_after_;  // depends, directly or not, on a sum over parts
  std::size_t last_ = 0, last_of_micro_batch_ = 0;
};

}  // namespace

bool is_gradient_reduction(const Graph& graph, NodeId collective, std::int64_t tensor_ranks) {
  if (!collective_traits(*graph.node(collective).op)->adds) return false;
  const AttrValue* stride = graph.node(collective).attrs.find("stride");
  return (stride == nullptr ? Dim(1) : std::get<Dim>(*stride)) == Dim(tensor_ranks);
}

bool is_state_gather(const Graph& graph, NodeId collective) {
  const Node& node = graph.node(collective);
  const AttrValue* axis = node.attrs.find("axis");
  return collective_traits(*node.op)->joins_parts && !graph.value(node.operands.front()).producer &&
         !graph.is_output(node.results.front()) &&
         (axis == nullptr || std::get<Dim>(*axis) == Dim(0));
}

std::vector<StepStage> cut_at_collectives(const Graph& graph, std::int64_t tensor_ranks) {
  return Cutter(graph, tensor_ranks).cut();
}

}  // namespace tenon::distributed
