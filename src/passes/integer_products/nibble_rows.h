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
  std::int64_t rows = 0;  ///< of scales; 0: one number for all
  std::int64_t length = 0;
};

/// One row times weights of four bits, which is bound by the memory that they come from: two of
/// them lie in a byte. Of a byte V = 16 h + l, of h from -8 to 7 and l from 0 to 15, kernels need V
/// and h = floor(V / 16) alone: with x and X the elements of the row that the two are multiplied by
///
///     x l + X h = x V + (X - 16 x) h
///
/// and what a zero point takes away is one more byte for each run and column, times a sum of x. Of
/// infinite elements of the row this makes NaN. Gives [columns, rounded up to whole blocks], or
/// nothing where the weights are not of four bits, or their runs not of even length.
ValueId row_times_nibbles(const rewrite::Match& match, const Constant& weights,
                          const Constant& scale, const Constant* zero, const Runs& runs);

}  // namespace tenon::integers
