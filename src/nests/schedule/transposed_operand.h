#pragma once

#include "nests/nest_builder.h"

#include <vector>

namespace tenon::nests {

/// Adds a transposing copy before a contraction whose result is contiguous along a loop while
/// neither operand is: keys of attention, the transposed right operand of a matmul. Constants are
/// skipped, since they are packed ahead of time; so are contractions with too few rows to amortize
/// the copy. Narrow factors with reuse are copied as well, widened. `line_elements` is the cache
/// line size: row distances of the copies avoid cache-set conflicts. `has_bf16_dot`: bf16 operands
/// of pair dot products stay narrow where possible.
void transpose_operands(NestSequence& sequence, const std::vector<bool>& is_constant,
                        std::int64_t line_elements, bool has_bf16_dot = false);

}  // namespace tenon::nests
