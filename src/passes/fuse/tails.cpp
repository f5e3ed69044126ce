// When work that needs all of what a kernel makes is so little that it runs right behind it.
#include "ops/chain_cost.h"
#include "passes/fuse/rules.h"

#include <algorithm>

namespace tenon::fusing {
namespace {

bool has_known_size(const Type& type) {
  return type.is_tensor() && product(type.tensor().dims).is_constant();
}

}  // namespace

Refusal Rules::tail_refusal(ClusterId producer, ClusterId reader) const {
  const Graph& graph = clusters.graph();
  if (!may_join_others(producer) || !may_join_others(reader)) return "one of them stays alone";
  if (anchor(reader) < Role::Rows) return "nothing is folded there";
  double bytes = 0;
  for (ValueId value : infos_[reader.index()].ports.read) {
    if (!has_known_size(graph.value(value).type)) return "only the run knows how much work it is";
    bytes += bytes_[value];
  }
  for (NodeId id : clusters.nodes(reader)) {
    for (ValueId result : graph.node(id).results) {
      if (!result) continue;
      if (!has_known_size(graph.value(result).type)) return "only the run knows how much work it is";
      if (escapes(result, reader, reader)) bytes += bytes_[result];
    }
  }
  if (!is_little_work(infos_[reader.index()].flops, bytes)) return "it is too much work for one thread";
  return size_refusal(producer, reader);
}

bool Rules::merge_tail(ClusterId producer, ClusterId reader) {
  Info info = infos_[producer.index()];
  info.ports = merged_ports(producer, reader);
  info.flops += infos_[reader.index()].flops;
  info.is_view = false;
  info.has_tail = true;
  const NodeId own = anchor_node(reader);
  const std::vector<NodeId> nodes(clusters.nodes(reader).begin(), clusters.nodes(reader).end());
  const std::optional<ClusterId> merged = clusters.merge(producer, reader);
  if (!merged) return false;
  infos_[merged->index()] = std::move(info);
  for (NodeId id : nodes) {
    if (!tail_anchors_[id]) tail_anchors_[id] = own;
  }
  return true;
}

}  // namespace tenon::fusing
