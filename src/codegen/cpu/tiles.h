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

/// of a tile of the processor's own, where it has some
inline constexpr unsigned kOwnTileRows = 16;

/// How a sum of products is turned.
struct TileShape {
  /// at most: of the result, kept in registers
  unsigned rows = 6, columns = 16;
  /// the loops around the tiles stand the other way than they usually would
  bool is_reordered = false;
  /// A long sum runs in parts of at most so many positions, so that what is read along columns
  /// stays in the first cache for all rows; 0: in one piece.
  unsigned depth = 0;
  /// products of bf16 are added up in pairs, where that can be
  bool is_paired = false;
  /// no tiles: lanes run along the sum, where they can
  bool along_sum = false;
};

/// What can be told of tiles before they are made.
struct TileFacts {
  /// why there can be none; empty where there can
  std::string refusal;
  /// nothing where it is a symbol; 1 where nothing is shared along rows
  std::optional<std::int64_t> row_count;
  std::int64_t column_count = 0;
  /// that the first cache holds side by side
  unsigned most_rows = 1;
  /// around the tiles
  bool has_other_loops = false;
  /// of parts of the sum
  std::string depth_refusal = "its sum is no product of many rows and constant columns";
  std::string pair_refusal = "it does not sum products of bf16 operands of which one is constant";
  /// pairs are added up in tiles of the processor's own
  bool has_own_tiles = false;
  /// empty where lanes can run along it instead
  std::string reduction_refusal = "a sum has columns, which tiles run along";
};
TileFacts tile_facts(LoopNest nest, const std::vector<bool>& may_pack, const TargetFacts& target);

/// The tile for so many vector registers of so many bits: sums take most of them, two vectors along
/// the columns and one number of a row the rest.
TileShape tile_for(unsigned register_count, unsigned register_bits);

/// The buffer along the rows of a tile, where reading it as it lies costs more than laying it out
/// anew would.
std::optional<std::size_t> rows_to_pack(LoopNest nest, const std::vector<bool>& may_pack,
                                        const TileShape& shape, const TargetFacts& target);

/// The stages of a nest whose outer loops hold several, each an independent loop of its own; none
/// where it has one.
Block* stages_of(LoopNest& nest);
/// Turns the stages one by one with `turn`, which is given a stage, the loops around it and how
/// those of its loops that are outside of a tile run, and gives how operands are laid out; nothing
/// where it can do nothing: then the stage is vectorised. Nothing where no stage was turned.
using StageTurn = std::function<std::optional<std::vector<Packing>>(
    Block& stage, const std::vector<Statement>& around, LoopKind outermost)>;
std::optional<std::vector<Packing>> turn_stages(LoopNest& nest, const StageTurn& turn);

/// If the nest sums products of two operands into one number per position, turns its loops so that
/// a tile of the result stays in registers: some rows (jammed) by some columns (a vector).
/// `may_pack` says which buffers can be laid out anew ahead of time. Gives how, for each that
/// should be. Where a result has no columns, lanes run along the sum (reduction_vectors.h). Stages
/// that stand in common outer loops are turned one by one.
std::optional<std::vector<Packing>> tile_contraction(LoopNest& nest,
                                                     const std::vector<bool>& may_pack,
                                                     const TileShape& shape,
                                                     const TargetFacts& target);

}  // namespace tenon::codegen::cpu
