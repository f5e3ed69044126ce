#pragma once

#include "codegen/cpu/row_blocks.h"
#include "codegen/cpu/tile_plan.h"
#include "target/facts.h"

namespace tenon::codegen::cpu {

/// Where all columns of b stay in a core's cache, threads share out what is around the rows: each
/// reads of a what it wrote itself, in neighbouring places. Else each reads its own part of b;
/// where all cores together hold b, there are halves of the rows for that.
struct Sharing {
  bool keeps_rows = false, halves = false;
  /// all of b stays in a core's cache
  bool is_close = false;
};
Sharing sharing_of(const Dims& b_view, const TileShape& shape, bool is_alone,
                   const TargetFacts& target);

/// In which blocks rows are shared out, where sums run in parts or in tiles of the processor's own.
RowBlocks row_blocks_of(const TilePlan& plan, const TargetFacts& target);

/// How many blocks of columns go through the parts of a sum together.
std::int64_t column_group(const TilePlan& plan, const TargetFacts& target);

/// How many blocks of columns a single row goes through at once, each with weights of its own: as
/// many streams as a core reads from memory fastest. 1 where caches hold the weights, or blocks
/// would be left over.
std::int64_t weight_streams(const TilePlan& plan, const TargetFacts& target);

/// How far ahead, in elements, columns that lie in panels are fetched where sums run in one piece:
/// the panel behind where many rows use one; else, of weights that a core's cache does not hold, as
/// much as memory takes to answer. 0: not at all.
std::int64_t panel_ahead(const TilePlan& plan, const Statement* rows, unsigned rows_at_once,
                         const TargetFacts& target);

/// How many positions of a sum the first cache holds, of the columns and rows of a tile.
unsigned depth_for(const TileShape& shape, const TargetFacts& target);
/// Whether reading columns from a core's cache for every tile of rows would take much of what it
/// gives.
bool gains_by_depth(const TileShape& shape, const TargetFacts& target);

}  // namespace tenon::codegen::cpu
