#pragma once

#include "nests/nest_builder.h"

#include <vector>

namespace tenon::nests {

/// Gives sums of products whose operand is read past its edges a nest before them that copies the
/// operand into a buffer with room around it, so that the sums need not look where they read. The
/// nests that do what `part` does, one or two. `is_constant` counts the sequence's buffers. The
/// copy is as wide as arithmetic, unless products are to be added up in pairs (nests/pairs.h) and
/// can be. Depthwise sums of f32 over an operand of at most `most_in_place` bytes stay as they are:
/// their lanes lie along all operands, so that kernels find edges whose places are numbers by
/// themselves. Of a larger one the copy, made in pieces, is what reads memory in order.
std::vector<NestSequence::Part> split_padding(NestSequence& sequence,
                                              const NestSequence::Part& part,
                                              const std::vector<bool>& is_constant,
                                              bool in_pairs = false, double most_in_place = 0);

}  // namespace tenon::nests
