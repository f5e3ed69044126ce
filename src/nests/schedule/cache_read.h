#pragma once

#include "nests/contraction.h"

namespace tenon::nests {

/// Materializes an operand of a contraction in a buffer of the arithmetic type: returns the nest
/// that computes it, and rewrites the part's load. The given loops become the axes, in that order;
/// `dims` are the buffer's extents, at least theirs. If the last loop is longer than `block` and a
/// multiple of it, the copy is blocked, with the blocks outermost. Legal for a load inside its
/// bounds that depends on no other loops.
NestSequence::NestCall cache_read(NestSequence& sequence, NestSequence::NestCall& part,
                                  const Contraction& contraction, const Scalar& load,
                                  const std::vector<const Statement*>& loops, const Dims& dims,
                                  std::int64_t block = 0);

/// Materializes all elements of the operand's buffer in their original order.
NestSequence::NestCall cache_read_whole(NestSequence& sequence, NestSequence::NestCall& part,
                                        const Contraction& contraction, const Scalar& load);

}  // namespace tenon::nests
