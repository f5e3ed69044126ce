#pragma once

#include "nests/contraction.h"

namespace tenon::nests {

/// Has an operand of a sum computed ahead, in a buffer of its own as wide as arithmetic: gives the
/// nest that does so, and the part reads the buffer from then on. The loops named get an axis each,
/// in that order; `dims` are the buffer's extents, no smaller than theirs. Where the last loop has
/// a multiple of `block` positions, and more, the copy goes by blocks of that many, which stand
/// outermost. May be applied to a load that stays inside its buffer and depends on no other loops.
NestSequence::Part stage(NestSequence& sequence, NestSequence::Part& part, const Contraction& sum,
                         const Scalar& load, const std::vector<const Statement*>& loops,
                         const Dims& dims, std::int64_t block = 0);

/// The same with all elements of the operand's buffer, in the order they have.
NestSequence::Part stage_whole(NestSequence& sequence, NestSequence::Part& part,
                               const Contraction& sum, const Scalar& load);

}  // namespace tenon::nests
