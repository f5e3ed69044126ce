#pragma once

#include "ir/graph.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace tenon::passes::fusing {

using ClusterId = Id<struct ClusterTag>;

/// A partition of nodes into clusters that can run one after the other. The cluster graph is
/// acyclic, and every merge is proven to keep it so.
class Clusters {
 public:
  explicit Clusters(const Graph& graph);

  ClusterId of(NodeId node) const { return owners_[node]; }
  /// Returns the cluster of the value's producer; invalid for a graph input.
  ClusterId maker(ValueId value) const { return makers_[value]; }
  /// Returns the nodes in graph order.
  std::span<const NodeId> nodes(ClusterId cluster) const { return members_[cluster.index()]; }
  /// Returns the node's position in the graph.
  std::uint32_t position(NodeId node) const { return positions_[node]; }

  /// Merges two clusters and returns the result. Refuses if another cluster would have to run
  /// between them, or if a bounded search cannot exclude that. Calls `before` only on success,
  /// while they are still two: most merges in a tangled graph are refused.
  std::optional<ClusterId> merge(ClusterId a, ClusterId b,
                                 const std::function<void()>& before = {});

  /// Returns all clusters in topological order.
  std::vector<ClusterId> in_order() const;
  const Graph& graph() const { return graph_; }

 private:
  class Search;
  struct ListLink {
    std::uint64_t label = 0;
    ClusterId previous, next;
  };

  template <class Visit>
  bool for_each_neighbour(ClusterId cluster, bool forwards, const Visit& visit) const;
  std::uint64_t label(ClusterId cluster) const { return places_[cluster.index()].label; }
  void unlink(ClusterId cluster);
  void link_after(ClusterId cluster, ClusterId previous);
  void make_room(ClusterId previous);
  void own(ClusterId cluster, NodeId node);
  ClusterId unite(ClusterId kept, ClusterId gone);

  const Graph& graph_;
  IdMap<NodeId, std::uint32_t> positions_;
  IdMap<NodeId, ClusterId> owners_;
  IdMap<ValueId, ClusterId> makers_;
  std::vector<std::vector<NodeId>> members_;
  std::vector<ListLink> places_;
  ClusterId first_;
  std::size_t visited_ = 0;                              // edges visited by all searches
  std::vector<std::uint32_t> seen_ahead_, seen_before_;  // the last search that found each cluster
  std::uint32_t search_ = 0;
};

}  // namespace tenon::passes::fusing
