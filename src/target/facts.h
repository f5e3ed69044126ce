#pragma once

#include "ir/dtype.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tenon {

/// Multiply-accumulate throughput of one unit for a pair of operand and accumulator types.
struct Rate {
  DType operand = DType::F32, sum = DType::F32;
  double flops_per_s = 0;
  /// Operands are rounded to a shorter mantissa first (tf32).
  bool rounds_to_tf32 = false;
};

/// A cache level, or memory.
struct MemoryLevel {
  /// 0: unlimited.
  std::uint64_t bytes = 0;
  unsigned ways = 0;
  /// Read bandwidth of one unit.
  double bytes_per_s = 0;
  /// Shared by all units.
  bool is_shared = false;

  bool operator==(const MemoryLevel&) const = default;
};

/// Machine model of a device, as data: all numbers that passes and code generation use. A unit is
/// an independent processor: a CPU core or a GPU multiprocessor (SM).
struct TargetFacts {
  /// For example "zen4".
  std::string name;
  /// Instruction sets that generated code may use, for example "x86-64-v4".
  std::string instructions;
  unsigned units = 1, registers = 16, vector_bits = 256, line_bytes = 64;
  double cycles_per_s = 0;
  std::vector<Rate> rates;
  /// Nearest first; the last is memory.
  std::vector<MemoryLevel> levels;
  /// Time to wake the units and join them.
  double start_s = 0;
  /// Machine balance: flop per byte at which all units saturate both arithmetic and memory.
  double machine_balance = 0;
  /// Preferred layout of a convolution's images, for example "NHWC".
  std::string image_layout;
  /// Penalty of a convolution in any other layout.
  double layout_loss_bytes_per_flop = 0;
  /// A contraction's result tile stays in the unit's cache until the next contraction reads it, so
  /// that one kernel may compute both (tile-and-fuse).
  bool keeps_tiles = true;
  /// M and N extents of the tensor-core tiles that generated GEMM kernels use, with any epilogue;
  /// 0: libraries compute narrow GEMMs and fuse few epilogues.
  unsigned gemm_tile = 0;
  /// Number of units that can host thread-block clusters larger than 2. A cluster cannot span GPCs,
  /// and GPCs differ in size, so this is less than the unit count.
  unsigned cluster_capable_units = 0;
  /// Prefetch distance in bytes for streamed weights, one memory latency. Applies if one row tile
  /// streams more than `streamed_caches` times a unit's own caches. Smaller weights, as in a
  /// recurrence, stay cached, and prefetching them again costs time. Measured on Sapphire Rapids.
  unsigned prefetch_bytes = 4096;
  /// Number of concurrent weight streams with the highest memory bandwidth.
  unsigned weight_streams = 1;
  double streamed_caches = 2;
  /// Longest int8 reduction for which VNNI vectors beat AMX tiles. Measured on Sapphire Rapids.
  unsigned max_vnni_reduction = 512;

  const MemoryLevel& nearest() const { return levels.front(); }
  /// The largest cache private to a unit, and the last-level cache.
  const MemoryLevel& private_cache() const;
  const MemoryLevel& last_level_cache() const;
  const MemoryLevel& memory() const { return levels.back(); }
  /// Share of the last-level cache (3/8) that one operand may fill and still hit on reuse.
  double llc_bytes_per_operand() const {
    return static_cast<double>(last_level_cache().bytes / 8 * 3);
  }
  /// Returns whether the rates include int8 multiply-accumulates.
  bool has_int8_multiply_add() const;
  /// Rate of one unit; the f32 rate if the operand type has no entry.
  double flops_per_s(DType operand, bool allows_tf32_rounding = false) const;
  /// Multiply-accumulates per cycle of one unit.
  double multiply_adds_per_cycle(DType operand = DType::F32) const;
  double bytes_per_cycle(const MemoryLevel& level) const {
    return level.bytes_per_s / cycles_per_s;
  }
};

}  // namespace tenon
