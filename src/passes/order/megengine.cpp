#include "passes/order/megengine.h"

#include "base/ready_order.h"
#include "base/text.h"

#include <numeric>
#include <optional>
#include <unordered_map>

namespace tenon::passes::ordering {
namespace {

std::optional<std::int64_t> bracketed(std::string_view name) {
  const std::size_t open = name.rfind('[');
  if (open == std::string_view::npos || !name.ends_with(']')) return std::nullopt;
  return parse_integer(name.substr(open + 1, name.size() - open - 2));
}

std::optional<std::int64_t> stated_id(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (!node.name.empty()) return bracketed(node.name);
  for (ValueId result : node.results) {
    if (result) return bracketed(graph.value(result).name);
  }
  return std::nullopt;
}

// Returns the ids that node names end in; nullopt if a node lacks one.
std::optional<std::vector<std::int64_t>> stated_ids(const Graph& graph) {
  std::vector<std::int64_t> ids;
  for (NodeId id : graph.nodes_in_order()) {
    const std::optional<std::int64_t> stated = stated_id(graph, id);
    if (!stated) return std::nullopt;
    ids.push_back(*stated);
  }
  return ids;
}

// Treats nodes of one id as one task. Returns an empty order if the tasks would form a cycle.
std::vector<NodeId> ordered_by(const Graph& graph, const std::vector<std::int64_t>& ids) {
  std::vector<ReadyTask> tasks;
  std::vector<std::vector<NodeId>> nodes;
  std::unordered_map<std::int64_t, std::uint32_t> known;
  IdMap<NodeId, std::uint32_t> task_of(graph.node_id_bound(), 0);
  std::size_t next = 0;
  for (NodeId id : graph.nodes_in_order()) {
    const std::int64_t number = ids[next++];
    const auto [found, is_new] = known.emplace(number, static_cast<std::uint32_t>(tasks.size()));
    if (is_new) {
      tasks.emplace_back().id = number;
      nodes.emplace_back();
    }
    const std::uint32_t task = task_of[id] = found->second;
    nodes[task].push_back(id);
    for (ValueId operand : graph.node(id).operands) {
      const NodeId maker = operand ? graph.value(operand).producer : NodeId{};
      if (maker && task_of[maker] != task) tasks[task].needs.push_back(task_of[maker]);
    }
  }
  const std::vector<std::uint32_t> sequence = ready_order(tasks).sequence;
  std::vector<NodeId> ordered;
  if (sequence.size() != tasks.size()) return ordered;
  for (std::uint32_t task : sequence) {
    ordered.insert(ordered.end(), nodes[task].begin(), nodes[task].end());
  }
  return ordered;
}

}  // namespace

std::vector<NodeId> megengine_order(const Graph& graph) {
  if (const auto ids = stated_ids(graph)) {
    std::vector<NodeId> ordered = ordered_by(graph, *ids);
    if (!ordered.empty()) return ordered;
  }
  std::vector<std::int64_t> positions(graph.node_count());
  std::iota(positions.begin(), positions.end(), 0);
  return ordered_by(graph, positions);
}

}  // namespace tenon::passes::ordering
