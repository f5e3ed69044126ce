#pragma once

#include "codegen/cpu/tiles.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::codegen::cpu {

/// Why a nest does not sum products of bytes in tiles, as a whole or in one of its stages; empty
/// where it does. `a`, without a sign, is read in rows, and `b`, a constant, is laid out anew: four
/// neighbours of the sum for each column.
std::string integer_tile_refusal(LoopNest nest, const std::vector<bool>& may_pack);

/// Whether rows and columns of such a nest fill tiles of the processor's own.
bool fits_own_tiles(LoopNest nest, const std::vector<bool>& may_pack);

/// Turns the loops of such a nest so that a tile of sums stays in registers, each step of which is
/// a dot of four bytes. Asks that nothing refuses it and that `a` has room (`split_byte_padding`).
/// Gives how `b` is laid out. Stages that stand in common outer loops are turned one by one.
std::optional<std::vector<Packing>> tile_integers(LoopNest& nest, const std::vector<bool>& may_pack,
                                                  const TileShape& shape,
                                                  const TargetFacts& target);

}  // namespace tenon::codegen::cpu
