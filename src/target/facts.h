#pragma once

#include "ir/dtype.h"
#include "target/heuristics.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::inline target {

/// Peak multiply-accumulate throughput of one unit for a pair of operand and accumulator types.
struct Rate {
  DType operand = DType::F32, sum = DType::F32;
  /// A multiply-accumulate counts as two operations; integer operations count likewise.
  double flops_per_s = 0;
  /// The rate applies only if f32 operands may be rounded to tf32 (10 mantissa bits).
  bool rounds_to_tf32 = false;
};

/// A cache level, the shared memory of an SM, or main memory.
struct MemoryLevel {
  /// Capacity; 0: unlimited (main memory).
  std::uint64_t bytes = 0;
  /// Associativity; 0: not a set-associative cache.
  unsigned ways = 0;
  /// Read bandwidth of one CPU core. On a GPU: of one SM if the level is private, otherwise of all
  /// SMs together.
  double bytes_per_s = 0;
  /// Shared by all units.
  bool is_shared = false;

  bool operator==(const MemoryLevel&) const = default;
};

/// Machine model of a device, as data: all numbers that passes and code generation use; measured
/// preferences are in `heuristics`. A unit is an independent processor: a CPU core or a GPU
/// multiprocessor (SM).
struct TargetFacts {
  /// For example "zen4" or "cuda:sm_90a".
  std::string name;
  /// Instruction sets that generated code may use, for example "x86-64-v4".
  std::string instructions;
  /// Number of units; architectural vector registers (GPU: 32-bit registers per thread); bits of a
  /// vector register (GPU: of the widest load of a thread); bytes of a cache line.
  unsigned units = 1, registers = 16, vector_bits = 256, line_bytes = 64;
  /// Clock frequency, at which cycle estimates are counted.
  double cycles_per_s = 0;
  /// One entry for f32 is required; types without an entry run at its rate.
  std::vector<Rate> rates;
  /// Nearest to the unit first; the last is main memory. Never empty.
  std::vector<MemoryLevel> levels;
  /// Fixed time per kernel. CPU: to wake the worker threads and wait for all. GPU: per launch.
  double start_s = 0;
  /// Machine balance: flop per byte at which all units saturate both arithmetic and memory.
  double machine_balance = 0;
  /// A contraction's result tile stays in the unit's cache until the next contraction reads it, so
  /// that one kernel may compute both (tile-and-fuse).
  bool keeps_tiles = true;
  /// M and N extents of the tensor-core tiles that generated GEMM kernels use, with any epilogue;
  /// 0: libraries compute narrow GEMMs and fuse few epilogues.
  unsigned gemm_tile = 0;
  /// Number of units that can host thread-block clusters larger than 2. A cluster cannot span GPCs,
  /// and GPCs differ in size, so this is less than the unit count.
  unsigned cluster_capable_units = 0;
  Heuristics heuristics;

  const MemoryLevel& nearest() const { return levels.front(); }
  /// Returns the last level that is not shared; the nearest level if all are.
  const MemoryLevel& private_cache() const;
  /// Returns the level before main memory; main memory itself if there is no cache.
  const MemoryLevel& last_level_cache() const;
  const MemoryLevel& memory() const { return levels.back(); }
  /// Share of the last-level cache (3/8) that one operand may fill and still hit on reuse.
  double llc_bytes_per_operand() const {
    return static_cast<double>(last_level_cache().bytes / 8 * 3);
  }
  /// Returns whether the rates include int8 multiply-accumulates (an entry for u8).
  bool has_int8_multiply_add() const;
  /// Returns the highest rate of one unit for the operand type; the f32 rate if the type has no
  /// entry.
  double flops_per_s(DType operand, bool allows_tf32_rounding = false) const;
  /// Returns multiply-accumulates per cycle of one unit: half its flops.
  double multiply_adds_per_cycle(DType operand = DType::F32) const;
  double bytes_per_cycle(const MemoryLevel& level) const {
    return level.bytes_per_s / cycles_per_s;
  }
};

}  // namespace tenon::inline target
