#pragma once

#include "ops/access.h"
#include "ops/required_region.h"
#include "passes/fuse/clusters.h"
#include "target/fusion_prices.h"

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace tenon::fusing {

/// Why something is not fused, in words that end a sentence; null where nothing speaks against it.
using Refusal = const char*;

/// What may share a kernel, and whether it pays. A kernel has a space it goes through element by
/// element, and at most one anchor that says how: a contraction or several of one input, folds over
/// windows, or folds over the same axes of the same space. Every value it writes has the space's
/// size, so that each element is computed once. A producer computed tile by tile
/// at its reader is a second anchor.
class Rules {
 public:
  /// Kernels of at most `max_nodes` nodes.
  Rules(const Graph& graph, const TargetFacts& target, std::size_t max_nodes);

  Clusters clusters;
  const NodeAccess& access(NodeId node) const { return access_[node]; }
  /// What the cluster's kernel is built around: Contraction, Windows, Rows, else Pointwise.
  Role anchor(ClusterId cluster) const { return infos_[cluster.index()].anchor; }
  NodeId anchor_node(ClusterId cluster) const { return infos_[cluster.index()].anchor_node; }
  bool may_join_others(ClusterId cluster) const {
    return !infos_[cluster.index()].is_opaque && !infos_[cluster.index()].is_dissolved;
  }
  /// No arithmetic: reading through it costs nothing.
  bool is_view(ClusterId cluster) const { return infos_[cluster.index()].is_view; }
  double bytes(ValueId value) const { return bytes_[value]; }

  /// Of two clusters of which the second reads the first.
  Refusal refusal(ClusterId producer, ClusterId reader) const;
  /// Of two clusters that share an operand.
  Refusal sibling_refusal(ClusterId a, ClusterId b, ValueId shared) const;
  /// Of every reader computing an index map for itself.
  Refusal copy_refusal(ClusterId view, ClusterId reader) const;
  /// Has `reader`'s kernel compute these index maps for itself.
  void copy(std::span<const NodeId> nodes, NodeId reader);
  /// Everything that reads this cluster has copies of it; it needs no kernel.
  void dissolve(ClusterId view) { infos_[view.index()].is_dissolved = true; }
  bool is_dissolved(ClusterId cluster) const { return infos_[cluster.index()].is_dissolved; }
  /// From here on index maps that several read may be written out.
  void write_views() { writes_views_ = true; }
  const std::vector<NodeId>& copies(NodeId reader) const { return copies_[reader]; }
  std::vector<NodeId> copies_in(ClusterId cluster) const;
  /// From here on two anchors may share a kernel: see `tile_and_fuse_verdict`.
  void allow_tile_and_fuse() { allows_tile_and_fuse_ = true; }
  /// What it gains, in bytes moved, to compute what `producer` hands to `reader` in pieces, each
  /// right before it is read; or why that is not done.
  struct TileAndFuseVerdict {
    Refusal refusal = nullptr;
    double gain = 0;
  };
  TileAndFuseVerdict tile_and_fuse_verdict(ClusterId producer, ClusterId reader) const;
  /// The anchor that reads this one's result in pieces; none of other nodes.
  NodeId tiled_reader(NodeId node) const { return tiled_readers_[node]; }

  /// Merges what was not refused; false where others would have to run between the two.
  bool merge(ClusterId a, ClusterId b);

  /// Whether somebody outside of both clusters sees the value.
  bool escapes(ValueId value, ClusterId a, ClusterId b) const;
  double saved_bytes(ClusterId producer, ClusterId reader) const;

 private:
  /// What a kernel takes and gives.
  struct Ports {
    std::vector<ValueId> read;  // what others make, in order
    std::uint32_t written = 0;  // how many values others see
    std::size_t count() const { return read.size() + written; }
  };

  struct Info {
    Role anchor = Role::Pointwise;
    NodeId anchor_node;
    bool is_opaque = false, is_view = false, is_dissolved = false;
    std::uint32_t folds = 0;  // over rows
    Ports ports;
    double flops = 0;
  };

  /// A reader's use of another cluster's value.
  struct Edge {
    ValueId value;
    NodeId reader;
    Access access;
  };

  std::vector<Edge> edges(ClusterId producer, ClusterId reader) const;
  /// Alike nodes are looked at once.
  const std::vector<RequiredRegion>& regions(NodeId node, std::size_t operand) const;
  Refusal tile_and_fuse_refusal(ClusterId producer, ClusterId reader,
                                std::span<const Edge> edges) const;
  /// Of what every pass reads, when the result's axes up to `depth` are cut.
  double weight_bytes(ClusterId cluster, std::optional<std::size_t> depth) const;
  bool is_part(NodeId node) const;
  bool same_rows(NodeId a, NodeId b) const;
  Refusal anchored_producer(ClusterId producer, ClusterId reader,
                            std::span<const Edge> edges) const;
  Refusal plain_producer(ClusterId producer, ClusterId reader, std::span<const Edge> edges) const;
  Refusal size_refusal(ClusterId a, ClusterId b) const;
  /// Of a target on which a vendor's library computes the sum: what it takes along is little.
  Refusal library_refusal(ClusterId producer, ClusterId reader) const;
  bool is_library_sum(ClusterId cluster) const;
  /// Whether a kernel of our own computes the product with whatever follows it, element by element.
  bool takes_any_step(ClusterId cluster, ClusterId reader) const;
  /// Whether all that is computed of a value, element by element, ends as numbers of the type.
  bool ends_as(ValueId value, DType dtype, int depth) const;
  bool is_long_sum(ClusterId cluster) const;
  Refusal escape_refusal(ClusterId a, ClusterId b) const;
  double repeats(const Edge& edge, ClusterId reader) const;
  Ports ports_of(NodeId node) const;
  Ports merged_ports(ClusterId a, ClusterId b) const;

  IdMap<NodeId, NodeAccess> access_;
  /// one of several outputs of one contraction
  IdMap<NodeId, std::uint8_t> is_piece_;
  IdMap<NodeId, std::uint8_t> feeds_folds_;  // stands before its cluster's anchor, in its windows
  IdMap<NodeId, NodeId> tiled_readers_;
  IdMap<ValueId, Dim> counts_;
  IdMap<ValueId, double> bytes_;
  std::vector<Info> infos_;
  IdMap<NodeId, std::vector<NodeId>> copies_;
  nests::FusionPrices prices_;
  std::size_t max_nodes_;
  bool keeps_tiles_;
  /// elements of a product from which such a kernel is worth it; 0: never
  double product_tiles_;
  /// … of bytes there is one for products of any size
  bool multiplies_bytes_;
  mutable std::unordered_map<std::string, std::vector<RequiredRegion>>
      regions_;  // by signature and operand
  bool writes_views_ = false, allows_tile_and_fuse_ = false;
  bool has_pieces_ = false;  // some node is one
};

}  // namespace tenon::fusing
