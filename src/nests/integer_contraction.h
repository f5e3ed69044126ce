#pragma once

#include "nests/contraction.h"

#include <vector>

namespace tenon::nests {

/// Where a nest sums products of bytes in i32: as find_contraction, with `a` and `b` the loads
/// under the casts that widen them.
std::optional<Contraction> find_integer_contraction(const Block& body);

/// A factor, a load under casts, with another load in its place.
Scalar with_load(const Scalar& factor, const Scalar& load);

/// Whether some loop adds up four products of bytes at a time.
bool has_dot_loop(const Block& block);
/// How many numbers in it, and whether some in a block, are sums of four products of bytes.
int dp4a_count(const Scalar& scalar);
bool has_dp4a(const Block& block);
inline bool has_dots(const Block& block) { return has_dot_loop(block) || has_dp4a(block); }

/// Readies `a`, an operand without a sign that is no constant, for dots of four neighbours along
/// the reduction: where it is read past its edges, or that loop is no multiple of four, a nest
/// before this one copies it with room around it. Gives the nests, the given one last; only that
/// where nothing is to be done or can be.
std::vector<NestSequence::Part> split_byte_padding(NestSequence& sequence,
                                                   const NestSequence::Part& part);

}  // namespace tenon::nests
