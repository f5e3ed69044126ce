#pragma once

#include "ir/dtype.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tenon {

/// How fast one unit computes sums of products.
struct Rate {
  DType operand = DType::F32, sum = DType::F32;
  double flops_per_s = 0;
  /// operands are rounded to fewer digits first: tf32
  bool drops_digits = false;
};

/// A cache, or memory.
struct MemoryLevel {
  /// 0: as much as there is
  std::uint64_t bytes = 0;
  unsigned ways = 0;
  /// that one unit reads
  double bytes_per_s = 0;
  /// by all units
  bool is_shared = false;

  bool operator==(const MemoryLevel&) const = default;
};

/// What a device is like, as data: all that passes and code generation count with. A unit is what
/// works by itself: a core.
struct TargetFacts {
  /// "zen4"
  std::string name;
  /// that its code may use: "x86-64-v4"
  std::string instructions;
  unsigned units = 1, registers = 16, vector_bits = 256, line_bytes = 64;
  double cycles_per_s = 0;
  std::vector<Rate> rates;
  /// nearest first; the last is memory
  std::vector<MemoryLevel> levels;
  /// to call units to work and wait for them
  double start_s = 0;
  /// as dear as moving one from or to memory, all units at work
  double flops_per_byte = 0;
  /// of a convolution's image: "NHWC"
  std::string image_layout;
  /// what computing in another layout costs
  double layout_loss_bytes_per_flop = 0;
  /// What a sum leaves in a unit's cache is there when the next one reads it, so that two may share
  /// a kernel.
  bool keeps_tiles = true;
  /// Rows and columns of the tiles in which products of narrow numbers are computed with whatever
  /// follows them; 0: a library computes them, and takes little along.
  unsigned product_tile = 0;
  /// Units on which blocks in clusters of more than two find room at once: units lie in groups of
  /// various sizes, and a cluster within one.
  unsigned cluster_units = 0;
  /// Weights that one tile of rows streams are fetched so far ahead, as long as memory takes to
  /// answer, where they are more than so many of a unit's own caches: less, as the weights of a
  /// recurrence, had better not be asked for again. Found on a Sapphire Rapids.
  unsigned ahead_bytes = 4096;
  /// So many streams of weights at once come from memory fastest.
  unsigned weight_streams = 1;
  double streamed_caches = 2;
  /// Sums of bytes that are no longer leave tiles of the processor's own later than vectors would
  /// have been done. Found there, too.
  unsigned short_tile_sum = 512;

  const MemoryLevel& nearest() const { return levels.front(); }
  /// The largest cache of a unit's own, and that of all.
  const MemoryLevel& own_cache() const;
  const MemoryLevel& shared_cache() const;
  const MemoryLevel& memory() const { return levels.back(); }
  /// What of the cache of all an operand may take and still be there when it is read again.
  double bytes_kept() const { return static_cast<double>(shared_cache().bytes / 8 * 3); }
  /// Whether a rate is stated for sums of products of bytes.
  bool multiplies_bytes() const;
  /// Of one unit; that of f32 where none is stated for the operands.
  double flops_per_s(DType operand, bool may_drop_digits = false) const;
  /// Sums of products that one unit adds to in a cycle.
  double products_per_cycle(DType operand = DType::F32) const;
  double bytes_per_cycle(const MemoryLevel& level) const {
    return level.bytes_per_s / cycles_per_s;
  }
};

}  // namespace tenon
