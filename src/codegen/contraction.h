#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/nest_builder.h"

namespace tenon::codegen {

/// The parts of a nest `for kept… { t = 0; for reduced… { t += a * b }; rest… }`.
struct Contraction {
  std::vector<const Statement*> kept;
  std::vector<const Statement*> reduced;
  const Block* inner = nullptr;  ///< the sum at positions 0 and 1, then the rest
  Scalar a, b;                   ///< loads of f32, f16 or bf16
};
std::optional<Contraction> find_contraction(const LoopNest& nest);
std::optional<Contraction> find_contraction(const Block& body);
/// Whether everything behind the sum reads and writes neighbours (or one element) along the loop.
bool suits_columns(const Contraction& sum, std::size_t loop);

/// Whether all that a load reads can be stored ahead: nothing outside of its buffer, or zeros there.
bool can_be_laid_anew(const Scalar& load);

/// How the elements of an operand are laid out anew for a nest: as the nest's loops read them. What
/// they read outside of the operand is zero.
struct Packing {
  std::size_t buffer = 0;             ///< in the nest
  Dims source_dims;                   ///< under which the coordinates below count
  std::vector<Scalar> coordinates;    ///< in the operand, of the loops below
  std::vector<std::size_t> loops;     ///< slowest first: one axis of the new layout each
  std::vector<std::int64_t> extents;  ///< of those
  std::int64_t limit = 0;             ///< positions past this, of the first and the last loop together, are zero
};

/// How a sum of products is turned.
struct TileShape {
  unsigned rows = 6, columns = 16;  ///< at most: of the result, kept in registers
  bool is_reordered = false;  ///< the loops around the tiles stand the other way than they usually would
};

/// What can be told of tiles before they are made.
struct TileFacts {
  std::string refusal;  ///< why there can be none; empty where there can
  std::optional<std::int64_t> row_count;  ///< nothing where it is a symbol; 1 where nothing is shared along rows
  std::int64_t column_count = 0;
  unsigned most_rows = 1;       ///< that the first cache holds side by side
  bool has_other_loops = false; ///< around the tiles
  std::string dots_refusal = "a sum has columns, which tiles run along";  ///< empty where lanes can run along it instead
};
TileFacts tile_facts(LoopNest nest, const std::vector<bool>& may_pack);

/// The tile for so many vector registers of so many bits: sums take most of them, two vectors along the
/// columns and one number of a row the rest.
TileShape tile_for(unsigned register_count, unsigned register_bits);

/// If the nest sums products of two operands into one number per position, turns its loops so that
/// a tile of the result stays in registers: some rows (jammed) by some columns (a vector). `may_pack`
/// says which buffers can be laid out anew ahead of time. Gives how, for each that should be. Where a
/// result has no columns, lanes run along the sum (codegen/dots.h). Stages that stand in common outer
/// loops are turned one by one.
std::optional<std::vector<Packing>> tile_contraction(LoopNest& nest, const std::vector<bool>& may_pack,
                                                     const TileShape& shape);

}  // namespace tenon::codegen
