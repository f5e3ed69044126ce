#pragma once

#include "codegen/cpu/register_tiles.h"
#include "codegen/cpu/tile_roles.h"
#include "nests/schedule/pack.h"
#include "target/facts.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::codegen::cpu {

/// Fewer row tiles than this do not reuse a panel enough to hide its prefetch.
inline constexpr std::int64_t kFewestTiles = 4;

/// Decisions about a register tile, made before any loop is transformed.
struct TilePlan {
  std::size_t columns = 0;
  Dim column_count;
  unsigned width = 0;
  std::optional<std::size_t> rows;
  Dim row_count;
  bool has_row_limit = false;
  unsigned rows_at_once = 1;
  /// Parallel loops other than rows and columns, outermost first.
  std::vector<std::size_t> others;
  std::vector<Dim> other_extents;
  /// Outermost first.
  std::vector<std::size_t> reduction;
  /// Loops that index b, except columns.
  std::vector<nests::PackedLoop> packed;
  /// Loop of the rows or others that is split into two halves for two threads.
  std::optional<std::size_t> halved;
  Dim halved_extent;
  /// The operand along columns.
  std::size_t b = 0;
  Dims b_view;
  /// 0 if symbolic.
  std::int64_t reduction_length = 0;
  /// K-blocking: positions of one reduction loop per block; 0: no blocking.
  std::int64_t depth = 0;
  /// The blocked reduction loop.
  std::size_t depth_level = 0;
  /// Elements of the reduction per block.
  std::int64_t depth_length = 0;
  /// The loop around the rows that is inside the K-blocks together with them.
  std::optional<std::size_t> lines;
  std::int64_t line_count = 0;
  /// The loop around the lines, if it iterates over images.
  std::optional<std::size_t> images;
  std::int64_t image_count = 0;
  /// bf16 pairs along the innermost reduction loop.
  bool is_paired = false;
  /// An AMX GEMM whose only loops are rows, columns and the reduction.
  bool is_shared_by_rows = false;
  Dim pair_extent;
  /// Operand bytes per row.
  double row_bytes = 0;
  /// Prefetch distance in elements of b; set if b is large and not packed.
  std::int64_t ahead = 0;
  /// Distance in elements of a to the next row tile; set if a is large.
  std::int64_t rows_ahead = 0;
  /// Set for short reductions, otherwise 0.
  std::int64_t result_bytes = 0;
  /// The operand along rows.
  std::size_t a = 0;
  /// Loops that index a, except rows, if a is packed; otherwise empty.
  std::vector<nests::PackedLoop> packed_rows;
};
/// `around_it` are the loops around the contraction's nest; `is_alone`: no outer loops are shared
/// with other stages.
TilePlan plan_of(const TileRoles& roles, const std::vector<Statement>& around_it,
                 const std::vector<bool>& may_pack, const TileShape& shape, bool is_alone,
                 const TargetFacts& target);

/// Returns why bf16 pairs (VDPBF16PS, TDPBF16PS) cannot be used; empty if they can.
std::string pair_refusal(const TileRoles& roles, const std::vector<bool>& may_pack,
                         const TileShape& shape, const TargetFacts& target);
/// Returns whether pairs fill AMX tiles.
bool fits_amx_tiles(const TileRoles& roles, const TargetFacts& target);
/// Returns why K-blocking is impossible; empty if it is possible. `may_take_lines`: rows of several
/// image lines count together.
std::string depth_refusal(const TileRoles& roles, const std::vector<bool>& may_pack,
                          const TileShape& shape, bool may_take_lines);
/// Returns whether packing the row operand tile by tile pays.
bool should_pack_rows(const TileRoles& roles, unsigned rows_at_once, unsigned width,
                      const TargetFacts& target);

}  // namespace tenon::codegen::cpu
