#pragma once

#include "nests/contraction.h"

namespace tenon::nests {

/// Columns that a bf16 pair dot product processes together.
inline constexpr std::int64_t kPairColumns = 32;

/// Returns the reduction loop along which bf16 products can be accumulated in pairs: elements of
/// `a` are contiguous along it and in bounds, or zeros after padding (schedule/pad.h); its extent
/// is even; and `b` can be packed accordingly, with columns that fill whole vectors. Null without
/// such a loop.
const Statement* bf16_dot_loop(const Contraction& contraction, const Scalar& a, const Scalar& b);

/// Returns whether the loop is a bf16 pair: two reduction positions that one instruction
/// (VDPBF16PS) accumulates. In nests it is a loop of extent two with width two: `for r in 0..2
/// carried by 2`.
bool is_bf16_dot(const Statement& loop);
/// Returns whether the block contains a pair at any depth.
bool has_bf16_dot(const Block& block);

}  // namespace tenon::nests
