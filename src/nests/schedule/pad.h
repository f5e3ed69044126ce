#pragma once

#include "nests/nest_builder.h"

#include <vector>

namespace tenon::nests {

/// Adds a padding nest before a contraction that reads an operand out of bounds: a padded copy
/// removes the bounds checks. Returns one or two nests equivalent to `part`. `is_constant` is
/// indexed by the sequence's buffers. The copy has the arithmetic type, unless bf16 pairs
/// (nests/bf16_dot.h) are requested and possible. Depthwise f32 convolutions of an operand of at
/// most `most_in_place` bytes stay unchanged: their lanes run along all operands, so that kernels
/// peel edges of constant extent themselves. For a larger operand the tiled copy gives sequential
/// memory access.
std::vector<NestSequence::NestCall> split_padding(NestSequence& sequence,
                                                  const NestSequence::NestCall& part,
                                                  const std::vector<bool>& is_constant,
                                                  bool in_pairs = false, double most_in_place = 0);

}  // namespace tenon::nests
