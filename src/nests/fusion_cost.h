#pragma once

namespace tenon::nests {

/// What things cost on a target, in bytes moved from or to memory.
struct FusionPrices {
  /// one more kernel, of which
  double kernel_bytes = 0;
  /// starting and joining threads
  double fork_bytes = 0;
  /// as dear as moving a byte
  double flops_per_byte = 1;
  /// What a thread keeps close: its pieces, and with them what every pass reads again. More than
  /// that is found in the cache that threads share, if that holds it.
  double local_bytes = 0, close_bytes = 0, shared_bytes = 0;
  /// what a byte read again from there costs
  double close_share = 1, shared_share = 1;
  /// that registers hold
  double tile_rows = 1;
  /// among which passes should come out even
  double threads = 1;
};

/// What computing one value in pieces, each right before it is read, gains and costs against
/// writing it whole to memory first. A piece stays in a small buffer of its thread; each pass makes
/// one piece and goes over the weights of both sides.
struct FusionCost {
  FusionPrices prices;
  double passes = 1;
  /// of which threads can count on so many, whatever symbols are
  double sure_passes = 1;
  /// of the values between, whole
  double handed_bytes = 0;
  /// fewer
  double kernels = 0;
  /// where pieces overlap
  double again_flops = 0;
  double again_bytes = 0;
  /// that every pass reads
  double weight_bytes = 0;
  /// beside what is wanted, where passes take parts of lines
  double line_bytes = 0;
  /// of one piece
  double local_bytes = 0;
  /// of all of it
  double flops = 0;

  /// Counts products whose weights a pass uses for fewer rows than registers hold and there are.
  void count_rows(double rows, double whole_rows, double product_flops);

  /// In bytes moved; below zero where it is better not done.
  double gain() const;
};

/// Loops are not cut into larger blocks: weights are read seldom enough by then.
inline constexpr int kMaxFusedBlock = 256;

}  // namespace tenon::nests
