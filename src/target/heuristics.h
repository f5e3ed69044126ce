#pragma once

#include <cstdint>
#include <string>

namespace tenon::inline target {

/// Measured preferences of code generation, which no data sheet lists. Each names the machine that
/// it was found on; another machine may prefer other numbers.
struct Heuristics {
  /// CPU: prefetch distance in bytes for streamed weights, one memory latency. Weights are streamed
  /// if a product with a single tile of rows reads more than `streamed_caches` times the private
  /// cache. Smaller weights, as in a recurrence, stay cached, and prefetching them again costs
  /// time. Sapphire Rapids.
  unsigned prefetch_bytes = 4096;
  /// CPU: number of concurrent streams of weights with the highest memory bandwidth. Used by
  /// matrix-vector products. Emerald Rapids: 2.
  unsigned weight_streams = 1;
  /// Weights larger than this multiple of the private cache are streamed. Sapphire Rapids.
  double streamed_caches = 2;
  /// Longest int8 reduction, in elements, for which VNNI vectors beat AMX tiles. Sapphire Rapids.
  unsigned max_vnni_reduction = 512;
  /// Fewest iterations of shared outer loops for which stages with other loops join a nest: each
  /// iteration runs on one thread. Sapphire Rapids at batch 8, H200 at batch 1.
  std::int64_t min_shared_iterations = 8;
  /// Preferred layout of a convolution's images: "NHWC" or "NCHW". Target of `choose-layouts`. Zen
  /// 4 and H200: "NHWC".
  std::string image_layout;
  /// Penalty of a convolution in any other layout: bytes of memory traffic per flop of the
  /// convolution. `choose-layouts` compares it with the traffic of a transposition. Zen 4.
  double layout_loss_bytes_per_flop = 0;
};

}  // namespace tenon::inline target
