#pragma once

#include "nests/nest_builder.h"

namespace tenon::nests {

/// An axis of a buffer that holds zeros, `extent` rows, zeros.
struct ZeroBorder {
  std::size_t buffer = 0, axis = 0;
  std::int64_t before = 0, extent = 0;
  /// of the buffer; where they are others, it was laid out anew
  Dims dims;
};

/// What `copy`, a nest of `split_padding`, leaves as zeros around the rows that `sum` reads: its
/// first axis with room around it. Nothing where the room is not zeros, or its size no number.
std::optional<ZeroBorder> zero_border(const NestSequence::Part& copy,
                                      const NestSequence::Part& sum);

/// Rows of a window that lie in the border for all positions of a pass are not computed: the loop
/// over them begins and ends where the window meets the rows between. May be applied to a sum of
/// products with such a row: each adds a zero (a weight that is not finite does not make NaN of
/// them). Left as it is where less than a tenth of the products would go. Gives whether it changed
/// anything.
bool skip_padding(LoopNest& nest, const ZeroBorder& border);

}  // namespace tenon::nests
