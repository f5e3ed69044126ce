#pragma once

#include "codegen/nest_names.h"
#include "nests/contraction.h"
#include "nests/packing.h"
#include "target/facts.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tenon::codegen::cpu {

using nests::Contraction;
using nests::Packing;

/// Rows of an AMX tile.
inline constexpr unsigned kOwnTileRows = 16;

/// Schedule parameters of a contraction.
struct TileShape {
  /// Maximum size of the register tile of accumulators.
  unsigned rows = 6, columns = 16;
  /// Swaps the default order of the loops around the tiles.
  bool is_loop_order_swapped = false;
  /// K-blocking: a long reduction is split into blocks of at most this many positions, so that the
  /// packed columns stay in L1 for all rows; 0: no blocking.
  unsigned depth = 0;
  /// bf16 products are accumulated in pairs if possible.
  bool is_paired = false;
  /// Vector lanes run along the reduction instead of columns, if possible.
  bool lanes_along_k = false;
};

/// Properties of the tiles, computed before the schedule is applied.
struct TileFacts {
  /// Reason of a refusal; empty if tiles are possible.
  std::string refusal;
  /// No value if symbolic; 1 if no operand is reused along rows.
  std::optional<std::int64_t> row_count;
  std::int64_t column_count = 0;
  /// Rows that L1 holds together.
  unsigned max_rows = 1;
  /// Parallel loops around the tiles.
  bool has_other_loops = false;
  /// Reason against K-blocking.
  std::string depth_refusal = "its sum is no product of many rows and constant columns";
  std::string pair_refusal = "it does not sum products of bf16 operands of which one is constant";
  /// Pairs are accumulated in AMX tiles.
  bool has_amx_tiles = false;
  /// Empty if lanes can run along the reduction instead.
  std::string reduction_refusal = "a sum has columns, which tiles run along";
};
TileFacts tile_facts(LoopNest nest, const std::vector<bool>& may_pack, const TargetFacts& target);

/// Returns the register tile for this number and width of vector registers: accumulators take most
/// of them, two column vectors and one broadcast row element the rest.
TileShape tile_for(unsigned register_count, unsigned register_bits);

/// Returns the buffer along the rows if packing it costs less than strided reads.
std::optional<std::size_t> rows_to_pack(LoopNest nest, const std::vector<bool>& may_pack,
                                        const TileShape& shape, const TargetFacts& target);

/// Returns the block of independent stages inside common outer loops; null if the nest has a single
/// stage.
Block* stages_of(LoopNest& nest);
/// Schedules the stages one by one by `reordering`, which gets a stage, the loops around it and the
/// kind of its loops outside of a tile, and returns packings; without a value the stage is
/// vectorized. Returns no value if no stage was scheduled by `reordering`.
using StageReordering = std::function<std::optional<std::vector<Packing>>(
    Block& stage, const std::vector<Statement>& around, LoopKind outermost)>;
std::optional<std::vector<Packing>> reorder_stages(LoopNest& nest,
                                                   const StageReordering& reordering);

/// Register tiling (micro-kernel): schedules a contraction of two operands so that a tile of the
/// result stays in registers, rows unrolled and jammed, columns vectorized. `may_pack` lists
/// buffers that can be packed ahead of time; returns the packings to apply. If the result has no
/// columns, lanes run along the reduction (reduction_vectors.h). Stages in common outer loops are
/// scheduled one by one.
std::optional<std::vector<Packing>> tile_contraction(LoopNest& nest,
                                                     const std::vector<bool>& may_pack,
                                                     const TileShape& shape,
                                                     const TargetFacts& target);

}  // namespace tenon::codegen::cpu
