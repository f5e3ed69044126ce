#pragma once

#include "nests/nest_builder.h"

#include <vector>

namespace tenon::nests {

/// Gives sums of products whose result lies along a loop, and neither operand does, a nest before
/// them that copies an operand so that it does: the keys of attention, the second matrix of a
/// product when it comes transposed. Constants are left alone, they are packed ahead of time; so
/// are sums with too few rows to pay for the copy. Factors that are narrower than arithmetic and
/// read over and over are copied too, wide. `line_elements` lie in a line of a cache: rows of
/// copies are kept from lying where they would take each other's places. `has_pairs`: products of
/// bf16 are added up in pairs as they are, where that can be.
void transpose_operands(NestSequence& sequence, const std::vector<bool>& is_constant,
                        std::int64_t line_elements, bool has_pairs = false);

}  // namespace tenon::nests
