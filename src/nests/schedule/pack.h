#pragma once

#include "nests/loop_nest.h"
#include "nests/packing.h"

#include <optional>
#include <vector>

namespace tenon::nests {

/// A loop that a packed operand gets an axis for.
struct PackedLoop {
  std::size_t id = 0;
  Dim extent;
};

/// Has a buffer laid out anew in the order in which loops read it, slowest first, and the block
/// read it so. May be applied to a buffer that is read in one place of the nest, inside its edges
/// or with zeros outside, at coordinates that are affine in the loops named, whose extents are
/// numbers. Gives the order; nothing, and nothing changed, where that does not hold. Positions past
/// `limit`, of the first and the last loop together, are zero.
std::optional<Packing> pack(LoopNest& nest, Block& block, std::size_t buffer,
                            const std::vector<PackedLoop>& loops, std::int64_t limit);

}  // namespace tenon::nests
