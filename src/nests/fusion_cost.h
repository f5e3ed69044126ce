#pragma once

namespace tenon::nests {

/// Costs of a target, in bytes of memory traffic.
struct FusionPrices {
  /// Per kernel launch, including `fork_bytes`.
  double kernel_bytes = 0;
  /// Waking and joining threads.
  double fork_bytes = 0;
  /// Machine balance.
  double machine_balance = 1;
  /// Capacities per thread: for scratch, for scratch with reread weights in the own cache, and for
  /// both in a share of the last-level cache.
  double local_bytes = 0, close_bytes = 0, shared_bytes = 0;
  /// Cost of rereading a byte from these caches, relative to memory.
  double close_share = 1, shared_share = 1;
  /// Rows of a register tile.
  double tile_rows = 1;
  /// Thread count for load balance.
  double threads = 1;
};

/// Costs and savings of tile-and-fuse against writing the intermediate values to memory. A tile
/// stays in thread-local scratch; each iteration of the outer loops computes one tile and reads the
/// weights of both sides.
struct FusionCost {
  FusionPrices prices;
  double passes = 1;
  /// Iterations available to threads, with symbolic extents at their minimum.
  double sure_passes = 1;
  /// Size of the intermediate values.
  double handed_bytes = 0;
  /// Number of kernels saved.
  double kernels = 0;
  /// Recomputation in overlapping tiles (halos).
  double again_flops = 0;
  double again_bytes = 0;
  /// Read by every iteration.
  double weight_bytes = 0;
  /// Unused parts of cache lines, if iterations read partial lines.
  double line_bytes = 0;
  /// Scratch per thread.
  double local_bytes = 0;
  /// Total arithmetic.
  double flops = 0;

  /// Adds the loss of contractions whose tile has fewer rows than the register tile could use.
  void count_rows(double rows, double whole_rows, double contraction_flops);

  /// Net saving in bytes of memory traffic; negative if fusion does not pay.
  double gain() const;
};

/// Upper bound of tile sizes: larger tiles hardly reduce weight traffic any further.
inline constexpr int kMaxFusedBlock = 256;

}  // namespace tenon::nests
