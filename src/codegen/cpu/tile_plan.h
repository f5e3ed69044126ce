#pragma once

#include "codegen/cpu/tile_roles.h"
#include "codegen/cpu/tiles.h"
#include "nests/schedule/pack.h"
#include "target/facts.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::codegen::cpu {

/// Fewer tiles of rows than this do not share a panel for long.
inline constexpr std::int64_t kFewestTiles = 4;

/// What is decided of a tile before any loop is moved.
struct TilePlan {
  std::size_t columns = 0;
  Dim column_count;
  unsigned width = 0;
  std::optional<std::size_t> rows;
  Dim row_count;
  bool has_row_limit = false;
  unsigned rows_at_once = 1;
  /// the loops around rows and columns, outermost first
  std::vector<std::size_t> others;
  std::vector<Dim> other_extents;
  /// outermost first
  std::vector<std::size_t> reduction;
  /// that b runs along, besides columns
  std::vector<nests::PackedLoop> packed;
  /// of rows and others
  std::optional<std::size_t> halved;
  Dim halved_extent;
  /// the buffer along columns
  std::size_t b = 0;
  Dims b_view;
  /// 0 where it is no number
  std::int64_t sum_length = 0;
  /// positions of a loop of the sum at a time; 0: all
  std::int64_t depth = 0;
  /// of which loop
  std::size_t depth_level = 0;
  /// of the sum, so many at a time
  std::int64_t depth_length = 0;
  /// the loop around the rows, where parts of the sum run around both
  std::optional<std::size_t> lines;
  std::int64_t line_count = 0;
  /// the loop around the lines, where it counts images
  std::optional<std::size_t> images;
  std::int64_t image_count = 0;
  /// along the innermost loop of the sum
  bool is_paired = false;
  /// a product in tiles of the processor's own: nothing but rows and columns
  bool is_shared_by_rows = false;
  Dim pair_extent;
  /// that one row reads
  double row_bytes = 0;
  /// elements of b, where it is large and not laid out anew
  std::int64_t ahead = 0;
  /// elements of a to the next tile of rows, where it is large
  std::int64_t rows_ahead = 0;
  /// of a short sum; else 0
  std::int64_t result_bytes = 0;
  /// the buffer along rows
  std::size_t a = 0;
  /// that a runs along, besides rows, where it is laid out anew; else none
  std::vector<nests::PackedLoop> packed_rows;
};
/// `around_it` are loops that stand around the nest the sum is in; `is_alone`: there are none that
/// it shares.
TilePlan plan_of(const Roles& roles, const std::vector<Statement>& around_it,
                 const std::vector<bool>& may_pack, const TileShape& shape, bool is_alone,
                 const TargetFacts& target);

/// Why products cannot be added up in pairs; empty where they can.
std::string pair_refusal(const Roles& roles, const std::vector<bool>& may_pack,
                         const TileShape& shape, const TargetFacts& target);
/// Whether pairs fill tiles of the processor's own.
bool fits_own_tiles(const Roles& roles, const TargetFacts& target);
/// Why the sum cannot run in parts; empty where it can. `may_take_lines`: rows of several lines
/// count together.
std::string depth_refusal(const Roles& roles, const std::vector<bool>& may_pack,
                          const TileShape& shape, bool may_take_lines);
/// Whether rows had better be laid out tile by tile.
bool should_pack_rows(const Roles& roles, unsigned rows_at_once, unsigned width,
                      const TargetFacts& target);

}  // namespace tenon::codegen::cpu
