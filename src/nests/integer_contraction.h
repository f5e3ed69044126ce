#pragma once

#include "nests/contraction.h"

#include <vector>

namespace tenon::nests {

/// Matches an int8 contraction accumulated in i32: like find_contraction, with `a` and `b` the
/// loads under their widening casts.
std::optional<Contraction> find_integer_contraction(const Block& body);

/// Replaces the load under a factor's casts.
Scalar with_load(const Scalar& factor, const Scalar& load);

/// Returns whether a loop is a dot product of four bytes.
bool has_dot_loop(const Block& block);
/// The number of dot products of four bytes in a scalar, and whether a block contains one.
int dp4a_count(const Scalar& scalar);
bool has_dp4a(const Block& block);
inline bool has_dots(const Block& block) { return has_dot_loop(block) || has_dp4a(block); }

/// Prepares `a`, an unsigned non-constant operand, for dots of four along the reduction: if it is
/// read out of bounds, or the loop is not a multiple of four, a preceding nest makes a padded copy.
/// Returns the nests, the given one last; only the given one if no copy is needed or possible.
std::vector<NestSequence::NestCall> split_byte_padding(NestSequence& sequence,
                                                       const NestSequence::NestCall& part);

}  // namespace tenon::nests
