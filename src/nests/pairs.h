#pragma once

#include "nests/contraction.h"

namespace tenon::nests {

/// Columns of which sums of pairs are computed together.
inline constexpr std::int64_t kPairColumns = 32;

/// The loop of the sum along which products of bf16 can be added up in pairs: elements of `a` lie
/// side by side along it and are all there, or zeros once there is room around them
/// (schedule/pad.h), their number is even, and `b` can be laid out so, for columns that fill whole
/// vectors. Nothing where there is none.
const Statement* pair_loop(const Contraction& sum, const Scalar& a, const Scalar& b);

/// Whether the loop is a pair: both positions of a sum of products of bf16, added by one
/// instruction. In nests it is a loop of two that runs both positions at a time: `for r in 0..2
/// carried by 2`.
bool is_pair(const Statement& loop);
/// Whether there is one in the block, or in what stands inside.
bool has_pairs(const Block& block);

}  // namespace tenon::nests
