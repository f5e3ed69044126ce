#pragma once

namespace tenon {

/// What computing one value in pieces, each right before it is read, gains and costs against
/// writing it whole to memory first. A piece stays in a small buffer of its thread; each pass makes
/// one piece and goes over the weights of both sides.
struct ChainCost {
  double passes = 1;
  double sure_passes = 1;   ///< of which threads can count on so many, whatever symbols are
  double handed_bytes = 0;  ///< of the values between, whole
  double kernels = 0;       ///< fewer
  double again_flops = 0;   ///< where pieces overlap
  double again_bytes = 0;
  double weight_bytes = 0;  ///< that every pass reads
  double local_bytes = 0;   ///< of one piece
  double flops = 0;         ///< of all of it

  /// Counts products whose weights a pass uses for fewer rows than registers hold and there are.
  void count_rows(double rows, double whole_rows, double product_flops);

  /// In bytes moved; below zero where it is better not done.
  double gain() const;
};

/// In bytes moved: what one more kernel costs, of which starting and joining threads; and how many
/// flops are as dear as moving a byte.
inline constexpr double kKernelBytes = 128 * 1024, kForkBytes = 32 * 1024, kFlopsPerByte = 8;
/// Whether work costs less than starting and joining threads to share it out: one that waits for what
/// the work reads does it right then. `bytes` are those read and written, weights among them.
bool is_little_work(double flops, double bytes);
/// Loops are not cut into larger blocks: weights are read seldom enough by then.
inline constexpr int kMaxChainBlock = 256;

}  // namespace tenon
