#pragma once

#include "nests/contraction.h"

namespace tenon::nests {

/// Which of the sequence's buffers one of a part's is.
std::size_t buffer_of(const NestSequence::Part& part, std::size_t id);

/// Has a sum read a copy of one of its factors, which is the sequence's buffer `number`, where and
/// how `read` says. The operand itself may still be read behind the sum.
void read_copy(NestSequence::Part& part, const Contraction& sum, const Scalar& factor,
               NestBuffer copy, std::size_t number, ScalarNode read);

/// Leaves only the buffers that the nest uses: what else it were given would be kept for it.
void drop_unused_buffers(NestSequence::Part& part);

}  // namespace tenon::nests
