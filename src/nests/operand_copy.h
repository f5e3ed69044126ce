#pragma once

#include "nests/contraction.h"

namespace tenon::nests {

/// Returns the sequence's index of a part's buffer.
std::size_t buffer_of(const NestSequence::NestCall& part, std::size_t id);

/// Makes a contraction read one factor from a copy, the sequence's buffer `number`, through the
/// load `read`. The epilogue may still read the original operand.
void read_copy(NestSequence::NestCall& part, const Contraction& contraction, const Scalar& factor,
               NestBuffer copy, std::size_t number, ScalarNode read);

/// Removes buffers that the nest does not use: arguments would be kept alive for it.
void drop_unused_buffers(NestSequence::NestCall& part);

}  // namespace tenon::nests
