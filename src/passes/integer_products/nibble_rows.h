#pragma once

#include "passes/rewrite/match.h"

#include <cstdint>

namespace tenon::integers {

/// Columns that lie side by side, for all of the sum, so that a kernel goes through memory in
/// order.
inline constexpr std::int64_t kColumns = 32;

/// How scales and zero points lie over the weights: one for all, for each column, or for runs along
/// the sum.
struct Runs {
  /// of scales; 0: one number for all
  std::int64_t rows = 0;
  std::int64_t length = 0;
};

/// One row times weights of four bits, eight of which lie in a word of four bytes, so that what is
/// bound by memory reads half a byte for each, and sums of four products of bytes (`dp4a`) take few
/// instructions. The row becomes integers of 24 bits, in steps of its largest magnitude over
/// 127 x 65536: as exact as its floats are beside that element. They are three digits from -128 to
/// 127, multiplied one by one with weights from 0 to 15; sums are exact within a part of a run, and
/// floats from there on. A row that is not finite makes results that are not. Gives [columns,
/// rounded up to whole blocks], or nothing where the weights are not of four bits, or runs do not
/// divide the sum.
ValueId row_times_nibbles(const rewrite::Match& match, const Constant& weights,
                          const Constant& scale, const Constant* zero, const Runs& runs);

}  // namespace tenon::integers
