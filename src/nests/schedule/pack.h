#pragma once

#include "nests/loop_nest.h"
#include "nests/packing.h"

#include <optional>
#include <vector>

namespace tenon::nests {

/// A loop that becomes an axis of a packed operand.
struct PackedLoop {
  std::size_t id = 0;
  Dim extent;
};

/// Packs a buffer in the order in which loops read it, slowest first, and rewrites the block's
/// load. Legal for a buffer with a single load, inside its bounds or with zeros outside, at
/// coordinates affine in the given loops of constant extent. Returns the packing; no value, and an
/// unchanged nest, if illegal. Positions beyond `limit`, counted over the first and the last loop
/// together, are zero.
std::optional<Packing> pack(LoopNest& nest, Block& block, std::size_t buffer,
                            const std::vector<PackedLoop>& loops, std::int64_t limit);

}  // namespace tenon::nests
