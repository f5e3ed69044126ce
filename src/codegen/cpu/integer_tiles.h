#pragma once

#include "codegen/cpu/register_tiles.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::codegen::cpu {

/// Returns why neither the nest nor one of its stages is an int8 contraction that can be tiled;
/// empty if it can. `a` (unsigned) is read along rows; `b`, a constant, is packed for VNNI: four
/// consecutive elements of the reduction for each column.
std::string integer_tile_refusal(LoopNest nest, const std::vector<bool>& may_pack);

/// Returns whether rows and columns of such a nest fill AMX tiles.
bool fits_amx_tiles(LoopNest nest, const std::vector<bool>& may_pack);

/// Schedules an int8 contraction as a register tile of accumulators that each step updates by dot
/// products of four bytes (VNNI, AMX). Preconditions: the nest is not refused, and `a` has padding
/// (`split_byte_padding`). Returns the packing of `b`. Stages in common outer loops are scheduled
/// one by one.
std::optional<std::vector<Packing>> tile_integers(LoopNest& nest, const std::vector<bool>& may_pack,
                                                  const TileShape& shape,
                                                  const TargetFacts& target);

}  // namespace tenon::codegen::cpu
