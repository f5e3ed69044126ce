#include "documents/damp_branches.h"

#include "expr/analysis.h"

#include <unordered_set>

namespace tenon::documents {
namespace {

constexpr double kDamping = 0.25;
// bias, activation and annotations between a contraction and the residual addition
constexpr int kMaxSteps = 8;

bool is_weight(const Graph& graph, ValueId value) {
  const Constant* constant = value ? graph.constant_of(value) : nullptr;
  return constant != nullptr && constant->kind() == Constant::Kind::Normal &&
         constant->shape().size() >= 2;
}

// Returns the seeded weight of the contraction that a branch ends in, or an invalid id.
ValueId weight_of_branch(const Graph& graph, ValueId value) {
  for (int step = 0; step < kMaxSteps; ++step) {
    const NodeId id = graph.value(value).producer;
    if (!id || graph.readers(value).size() > 1) return {};
    const Node& node = graph.node(id);
    if (fusion_kind(graph, id) == Fusion::Contraction) {
      for (ValueId operand : node.operands) {
        if (is_weight(graph, operand)) return operand;
      }
      return {};
    }
    // Follows the single non-constant operand.
    ValueId next;
    for (ValueId operand : node.operands) {
      if (!operand || graph.constant_of(operand)) continue;
      if (next) return {};
      next = operand;
    }
    if (!next) return {};
    value = next;
  }
  return {};
}

void damp(Graph& graph, ValueId weight) {
  const Constant& old = *graph.constant_of(weight);
  graph.set_attribute(
      graph.value(weight).producer, "value",
      Constant::normal(old.dtype(), old.shape(), old.seed(), old.first(), old.second() * kDamping));
}

}  // namespace

void damp_branches(Graph& graph) {
  std::unordered_set<ValueId> damped;
  for (NodeId id : graph.nodes_in_order()) {
    const Node& node = graph.node(id);
    if (graph.op_name(id) != "add" || node.operands.size() != 2) continue;
    if (graph.constant_of(node.operands[0]) || graph.constant_of(node.operands[1])) continue;
    for (ValueId operand : node.operands) {
      const ValueId weight = weight_of_branch(graph, operand);
      if (!weight || graph.readers(weight).size() != 1 || !damped.insert(weight).second) continue;
      damp(graph, weight);
      break;
    }
  }
}

}  // namespace tenon::documents
