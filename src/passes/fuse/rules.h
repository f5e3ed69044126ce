#pragma once

#include "expr/access.h"
#include "expr/required_region.h"
#include "passes/fuse/clusters.h"
#include "target/fusion_prices.h"

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace tenon::passes::fusing {

/// Reason against a fusion, phrased as the end of a sentence; null permits it.
using Refusal = const char*;

/// Fusion legality and cost. A kernel iterates over one space element by element and has at most
/// one anchor that defines the loops: one or several contractions of one input, windowed
/// reductions, or reductions over the same axes of the same space. Every value that it writes has
/// the size of the space, so that each element is computed once. Tile-and-fuse adds the producer as
/// a second anchor.
class Rules {
 public:
  /// Limits kernels to `max_nodes` nodes.
  Rules(const Graph& graph, const TargetFacts& target, std::size_t max_nodes);

  Clusters clusters;
  const NodeAccess& access(NodeId node) const { return access_[node]; }
  /// Returns the kind of the cluster's anchor: Contraction, Windows, Rows, else Pointwise.
  Role anchor(ClusterId cluster) const { return infos_[cluster.index()].anchor; }
  NodeId anchor_node(ClusterId cluster) const { return infos_[cluster.index()].anchor_node; }
  bool may_join_others(ClusterId cluster) const {
    return !infos_[cluster.index()].is_opaque && !infos_[cluster.index()].is_dissolved;
  }
  /// Returns whether the cluster is an index map without arithmetic, free to read through.
  bool is_view(ClusterId cluster) const { return infos_[cluster.index()].is_view; }
  double bytes(ValueId value) const { return bytes_[value]; }

  /// Refusal for two clusters of which the second reads the first.
  Refusal refusal(ClusterId producer, ClusterId reader) const;
  /// Refusal for two clusters that share an operand.
  Refusal sibling_refusal(ClusterId a, ClusterId b, ValueId shared) const;
  /// Refusal to duplicate an index map into its reader.
  Refusal copy_refusal(ClusterId view, ClusterId reader) const;
  /// Duplicates these index maps into `reader`'s kernel.
  void copy(std::span<const NodeId> nodes, NodeId reader);
  /// Marks a cluster that was duplicated into all of its readers; it needs no kernel.
  void dissolve(ClusterId view) { infos_[view.index()].is_dissolved = true; }
  bool is_dissolved(ClusterId cluster) const { return infos_[cluster.index()].is_dissolved; }
  /// Allows index maps with several readers to be materialized from now on.
  void write_views() { writes_views_ = true; }
  const std::vector<NodeId>& copies(NodeId reader) const { return copies_[reader]; }
  std::vector<NodeId> copies_in(ClusterId cluster) const;
  /// Allows two anchors in one kernel from now on: see `tile_and_fuse_verdict`.
  void allow_tile_and_fuse() { allows_tile_and_fuse_ = true; }
  /// Gain, in bytes moved, of computing `producer` tile by tile right before `reader` reads the
  /// tile; or the reason against it.
  struct TileAndFuseVerdict {
    Refusal refusal = nullptr;
    double gain = 0;
  };
  TileAndFuseVerdict tile_and_fuse_verdict(ClusterId producer, ClusterId reader) const;
  /// Returns the anchor that reads this one's result tile by tile; invalid for other nodes.
  NodeId tiled_reader(NodeId node) const { return tiled_readers_[node]; }

  /// Merges two clusters without a refusal. Returns false if others would have to run between the
  /// two.
  bool merge(ClusterId a, ClusterId b);

  /// Returns whether a cluster other than these two reads the value.
  bool escapes(ValueId value, ClusterId a, ClusterId b) const;
  double saved_bytes(ClusterId producer, ClusterId reader) const;

 private:
  /// Values that a kernel reads and writes.
  struct Ports {
    std::vector<ValueId> read;  // values of other clusters, sorted
    std::uint32_t written = 0;  // number of values that others read
    std::size_t count() const { return read.size() + written; }
  };

  struct Info {
    Role anchor = Role::Pointwise;
    NodeId anchor_node;
    bool is_opaque = false, is_view = false, is_dissolved = false;
    std::uint32_t folds = 0;  // row reductions
    Ports ports;
    double flops = 0;
  };

  /// One use of another cluster's value.
  struct Edge {
    ValueId value;
    NodeId reader;
    Access access;
  };

  std::vector<Edge> edges(ClusterId producer, ClusterId reader) const;
  /// Computed once for identical nodes.
  const std::vector<RequiredRegion>& regions(NodeId node, std::size_t operand) const;
  Refusal tile_and_fuse_refusal(ClusterId producer, ClusterId reader,
                                std::span<const Edge> edges) const;
  /// Bytes that every tile reads if the result's axes up to `depth` are tiled.
  double weight_bytes(ClusterId cluster, std::optional<std::size_t> depth) const;
  bool is_part(NodeId node) const;
  bool same_rows(NodeId a, NodeId b) const;
  Refusal anchored_producer(ClusterId producer, ClusterId reader,
                            std::span<const Edge> edges) const;
  Refusal plain_producer(ClusterId producer, ClusterId reader, std::span<const Edge> edges) const;
  Refusal size_refusal(ClusterId a, ClusterId b) const;
  /// Refusal on a target whose vendor library computes the contraction: libraries support few
  /// epilogues.
  Refusal library_refusal(ClusterId producer, ClusterId reader) const;
  bool is_library_contraction(ClusterId cluster) const;
  /// Returns whether a generated kernel computes the product with any elementwise epilogue.
  bool takes_any_step(ClusterId cluster, ClusterId reader) const;
  /// Returns whether all elementwise uses of a value end as that type.
  bool ends_as(ValueId value, DType dtype, int depth) const;
  bool is_long_reduction(ClusterId cluster) const;
  Refusal escape_refusal(ClusterId a, ClusterId b) const;
  double repeats(const Edge& edge, ClusterId reader) const;
  Ports ports_of(NodeId node) const;
  Ports merged_ports(ClusterId a, ClusterId b) const;

  IdMap<NodeId, NodeAccess> access_;
  /// one of several outputs of one contraction
  IdMap<NodeId, std::uint8_t> is_piece_;
  // a producer of its cluster's anchor, inside the anchor's windows
  IdMap<NodeId, std::uint8_t> feeds_folds_;
  IdMap<NodeId, NodeId> tiled_readers_;
  IdMap<ValueId, Dim> counts_;
  IdMap<ValueId, double> bytes_;
  std::vector<Info> infos_;
  IdMap<NodeId, std::vector<NodeId>> copies_;
  nests::FusionPrices prices_;
  std::size_t max_nodes_;
  bool keeps_tiles_;
  /// least result size, in elements, from which one of our kernels is worth it; 0: never
  double gemm_tiles_;
  /// our kernels multiply 8-bit operands of any size
  bool multiplies_bytes_;
  mutable std::unordered_map<std::string, std::vector<RequiredRegion>>
      regions_;  // by signature and operand
  bool writes_views_ = false, allows_tile_and_fuse_ = false;
  bool has_pieces_ = false;  // some node is a piece
};

}  // namespace tenon::passes::fusing
