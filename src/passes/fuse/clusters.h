#pragma once

#include "ir/graph.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace tenon::fusing {

using ClusterId = Id<struct ClusterTag>;

/// Nodes partitioned into clusters that can run one after the other: the graph of clusters has no
/// cycle, and every merge is proven to leave it so.
class Clusters {
 public:
  explicit Clusters(const Graph& graph);

  ClusterId of(NodeId node) const { return owners_[node]; }
  /// Of the value's producer; invalid for a graph input.
  ClusterId maker(ValueId value) const { return makers_[value]; }
  /// In the graph's order.
  std::span<const NodeId> nodes(ClusterId cluster) const { return members_[cluster.index()]; }
  /// Where a node stands in the graph.
  std::uint32_t position(NodeId node) const { return positions_[node]; }

  /// Makes one cluster of two, unless others would have to run between them or that could not be
  /// proven within a bounded search. Gives the cluster they became. `before` is called where they
  /// do, while they are still two: most of what is asked for in a tangled graph is refused.
  std::optional<ClusterId> merge(ClusterId a, ClusterId b,
                                 const std::function<void()>& before = {});

  /// All clusters, each after those it reads.
  std::vector<ClusterId> in_order() const;
  const Graph& graph() const { return graph_; }

 private:
  class Search;
  struct Place {
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
  std::vector<Place> places_;
  ClusterId first_;
  std::size_t visited_ = 0;                              // edges that all searches looked at
  std::vector<std::uint32_t> seen_ahead_, seen_behind_;  // the last search that found a cluster
  std::uint32_t search_ = 0;
};

}  // namespace tenon::fusing
