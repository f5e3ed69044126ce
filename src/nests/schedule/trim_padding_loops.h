#pragma once

#include "nests/nest_builder.h"

namespace tenon::nests {

/// A buffer axis that consists of zeros, `extent` rows, and zeros.
struct ZeroPadding {
  std::size_t buffer = 0, axis = 0;
  std::int64_t before = 0, extent = 0;
  /// Extents of the buffer; a later packing changes them.
  Dims dims;
};

/// Returns the zero padding that `copy`, a nest of `split_padding`, adds around the rows that `sum`
/// reads: the first padded axis. No value if the fill is nonzero or the size is symbolic.
std::optional<ZeroPadding> zero_padding(const NestSequence::NestCall& copy,
                                        const NestSequence::NestCall& sum);

/// Trims padding from window loops: a loop over window rows is restricted to rows that meet the
/// interior, for all positions of a tile. Legal for contractions, in which a padded row adds zeros
/// (a non-finite weight then yields no NaN). Unchanged if less than a tenth of the products would
/// be saved. Returns whether the nest changed.
bool trim_padding_loops(LoopNest& nest, const ZeroPadding& border);

}  // namespace tenon::nests
