#include "models/summary.h"

#include "expr/access.h"
#include "expr/fused_groups.h"
#include "ir/extent_too_large.h"
#include "memory/liveness.h"

#include <algorithm>

namespace tenon::models {
namespace {

void add(Footprint& total, const Footprint& more) {
  total.flops = total_of(total.flops, more.flops);
  total.bytes_read = total_of(total.bytes_read, more.bytes_read);
  total.bytes_written = total_of(total.bytes_written, more.bytes_written);
}

// Symbolic counts are compared at the symbols' least values.
std::int64_t rank_of(const Dim& dim) { return dim.value().value_or(dim.range().lo); }

}  // namespace

Dim total_of(const Dim& a, const Dim& b) {
  static const Dim many = Dim::symbol("many");
  if (a == many || b == many) return many;
  try {
    return a + b;
  } catch (const ExtentTooLarge&) {
    return many;
  }
}

GraphSummary summarize(const Graph& graph) {
  GraphSummary summary;
  for (ValueId input : graph.inputs()) {
    const Value& value = graph.value(input);
    summary.inputs.push_back({value.name, value.type});
    if (!value.type.is_tensor()) continue;
    for (const Dim& dim : value.type.tensor().dims) dim.collect_symbols(summary.symbols);
  }
  for (ValueId output : graph.outputs()) {
    summary.outputs.push_back({graph.value(output).name, graph.value(output).type});
  }
  std::map<std::string, GraphSummary::OpCount> by_op;
  for (NodeId id : graph.nodes_in_order()) {
    const Node& node = graph.node(id);
    if (const Constant* constant =
            graph.constant_of(node.results.empty() ? ValueId() : node.results[0])) {
      ++summary.constant_count;
      const TensorType type = constant->type();
      if (is_float(type.dtype)) summary.parameter_count += constant->size();
      summary.constant_bytes += byte_count(type).constant();
      continue;
    }
    ++summary.node_count;
    const Footprint footprint = footprint_of(graph, id);
    GraphSummary::OpCount& count = by_op[node.op->name];
    count.op = node.op->name;
    ++count.nodes;
    add(count.footprint, footprint);
    add(summary.total, footprint);
  }
  for (auto& [name, count] : by_op) summary.ops.push_back(std::move(count));
  std::stable_sort(summary.ops.begin(), summary.ops.end(), [](const auto& a, const auto& b) {
    const std::int64_t left = rank_of(a.footprint.flops), right = rank_of(b.footprint.flops);
    return left != right ? left > right : a.nodes > b.nodes;
  });
  return summary;
}

std::optional<std::vector<NodeWork>> work_at(const Graph& graph, const DimBindings& symbols) {
  std::vector<NodeWork> work;
  for (NodeId id : memory::running_nodes(graph)) {
    const Footprint footprint = footprint_of(graph, id);
    const Dim flops = footprint.flops.substitute(symbols);
    const Dim bytes = (footprint.bytes_read + footprint.bytes_written).substitute(symbols);
    if (!flops.is_constant() || !bytes.is_constant()) return std::nullopt;
    const std::vector<ValueId>& results = graph.node(id).results;
    work.push_back({results.empty() || !results[0] ? "" : graph.value(results[0]).name,
                    static_cast<double>(flops.constant()), static_cast<double>(bytes.constant())});
  }
  return work;
}

std::size_t count_kernels(const Graph& graph) {
  std::size_t count = 0;
  for (NodeId id : memory::running_nodes(graph)) {
    ++count;
    if (is_fused_group(graph, id)) continue;
    for (const Graph& body : graph.node(id).bodies) count += count_kernels(body);
  }
  return count;
}

double bytes_moved(const Graph& graph) {
  double bytes = 0;
  for (NodeId id : memory::running_nodes(graph)) {
    const Footprint footprint = footprint_of(graph, id);
    bytes += size_hint(footprint.bytes_read) + size_hint(footprint.bytes_written);
    if (is_fused_group(graph, id)) continue;
    for (const Graph& body : graph.node(id).bodies) bytes += bytes_moved(body);
  }
  return bytes;
}

}  // namespace tenon::models
