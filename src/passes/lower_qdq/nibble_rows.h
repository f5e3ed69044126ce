#pragma once

#include "passes/rewrite/match.h"

#include <cstdint>

namespace tenon::passes::qdq {

/// Columns per block. A block holds its columns contiguously over the whole reduction, so that a
/// kernel reads memory in order.
inline constexpr std::int64_t kColumns = 32;

/// Granularity of scales and zero points: per tensor, per column, or per run along the reduction
/// dimension (K).
struct Runs {
  /// rows of scales; 0: one number for the tensor
  std::int64_t rows = 0;
  std::int64_t length = 0;
};

/// Matrix-vector product with packed 4-bit weights. Eight weights share a 32-bit word, which halves
/// the memory traffic of a memory-bound product, and dot products of four bytes (`dp4a`) take few
/// instructions. The row becomes 24-bit integers, in steps of its largest magnitude over 127 x
/// 65536, which preserves the precision of its floats relative to that element. Each integer has
/// three digits from -128 to 127, which are multiplied separately with weights from 0 to 15; sums
/// are exact within a part of a run, and floats from there on. A row with infinite or NaN elements
/// gives such results. Returns [columns, rounded up to whole blocks]; invalid if the weights do not
/// have four bits or runs do not divide the reduction.
ValueId row_times_nibbles(const rewrite::Match& match, const Constant& weights,
                          const Constant& scale, const Constant* zero, const Runs& runs);

}  // namespace tenon::passes::qdq
