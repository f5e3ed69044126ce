#include "memory/liveness.h"

#include "expr/access.h"
#include "expr/fused_groups.h"

#include <algorithm>

namespace tenon::memory {
namespace {

bool is_constant(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  return !node.results.empty() && node.results[0] && graph.constant_of(node.results[0]);
}

bool has_symbols(const Graph& graph, ValueId value) {
  const Type& type = graph.value(value).type;
  return !type.is_tensor() || !all_constant(type.tensor().dims);
}

}  // namespace

std::vector<NodeId> running_nodes(const Graph& graph) {
  std::vector<NodeId> nodes;
  for (NodeId id : graph.nodes_in_order()) {
    if (!is_constant(graph, id)) nodes.push_back(id);
  }
  return nodes;
}

std::int64_t live_bytes(const Graph& graph, ValueId value) {
  // Exceeds any memory, and a sum of a million such sizes still fits 64 bits.
  constexpr double kMost = std::int64_t{1} << 40;
  return static_cast<std::int64_t>(std::min(size_hint_bytes(graph.value(value).type), kMost));
}

std::int64_t inner_peak_bytes(const Graph& graph, NodeId id) {
  std::int64_t peak = 0;
  if (is_fused_group(graph, id)) return peak;
  for (const Graph& body : graph.node(id).bodies) {
    peak = std::max(peak, live_peak(body).peak_bytes);
  }
  return peak;
}

LivePeak live_peak(const Graph& graph) { return live_peak(graph, running_nodes(graph)); }

LivePeak live_peak(const Graph& graph, std::span<const NodeId> order) {
  LivePeak found;
  found.nodes.assign(order.begin(), order.end());
  found.bytes.resize(order.size(), 0);
  IdMap<NodeId, std::size_t> step_of(graph.node_id_bound(), 0);
  for (std::size_t step = 0; step < order.size(); ++step) step_of[order[step]] = step;
  const auto last_step = [&](ValueId value, std::size_t made) {
    if (graph.is_output(value)) return order.size() - 1;
    std::size_t last = made;
    for (NodeId reader : graph.readers(value)) last = std::max(last, step_of[reader]);
    return last;
  };
  std::vector<std::int64_t> freed(order.size() + 1, 0);
  std::int64_t held = 0;
  for (std::size_t step = 0; step < order.size(); ++step) {
    for (ValueId result : graph.node(order[step]).results) {
      if (!result) continue;
      const std::int64_t bytes = live_bytes(graph, result);
      found.is_exact = found.is_exact && !has_symbols(graph, result);
      held += bytes;
      freed[last_step(result, step)] += bytes;
    }
    found.bytes[step] = held + inner_peak_bytes(graph, order[step]);
    held -= freed[step];
  }
  const auto peak = std::ranges::max_element(found.bytes);
  if (peak == found.bytes.end()) return found;
  found.peak_bytes = *peak;
  found.step = static_cast<std::size_t>(peak - found.bytes.begin());
  found.node = order[found.step];
  for (std::size_t step = 0; step <= found.step; ++step) {
    for (ValueId result : graph.node(order[step]).results) {
      if (result && last_step(result, step) >= found.step) found.alive.push_back(result);
    }
  }
  std::ranges::stable_sort(found.alive, std::greater{},
                           [&](ValueId value) { return live_bytes(graph, value); });
  return found;
}

Problem liveness_problem(const Graph& graph) {
  Problem problem;
  problem.name = graph.name;
  const auto bytes_of = [&](ValueId value) {
    return static_cast<std::uint64_t>(live_bytes(graph, value));
  };
  for (ValueId input : graph.inputs()) problem.fixed_bytes += bytes_of(input);
  for (NodeId id : graph.nodes_in_order()) {
    if (is_constant(graph, id)) problem.fixed_bytes += bytes_of(graph.node(id).results[0]);
  }
  constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);
  IdMap<ValueId, std::uint32_t> value_of(graph.value_id_bound(), kNone);
  // By value; deduplicates a node's operands in linear time.
  std::vector<std::uint32_t> last_reader;
  for (NodeId id : running_nodes(graph)) {
    const Node& node = graph.node(id);
    Item item;
    item.name = node.name;
    item.number = static_cast<std::uint32_t>(problem.items.size());
    for (ValueId operand : node.operands) {
      const std::uint32_t value = operand ? value_of[operand] : kNone;
      if (value == kNone || last_reader[value] == item.number) continue;
      last_reader[value] = item.number;
      item.reads.push_back(value);
    }
    for (ValueId result : node.results) {
      if (!result) continue;
      value_of[result] = static_cast<std::uint32_t>(problem.values.size());
      item.makes.push_back(value_of[result]);
      last_reader.push_back(kNone);
      problem.values.push_back(
          {graph.value(result).name, bytes_of(result), graph.is_output(result), true});
    }
    if (item.name.empty() && !item.makes.empty()) item.name = problem.values[item.makes[0]].name;
    item.alternatives.push_back({0, static_cast<std::uint64_t>(inner_peak_bytes(graph, id))});
    problem.items.push_back(std::move(item));
  }
  return problem;
}

}  // namespace tenon::memory
