#pragma once

#include "codegen/cpu/row_blocks.h"
#include "codegen/cpu/tile_plan.h"
#include "target/facts.h"

namespace tenon::codegen::cpu {

/// Partition of the work among threads. If a core's own cache holds all columns of b, threads
/// partition the loops around the rows: a thread then reads neighboring parts of a, which it wrote
/// itself. Otherwise each thread reads its own part of b, and half of the rows if all cores
/// together hold b.
struct WorkPartition {
  bool keeps_rows = false, splits_rows = false;
  /// A core's own cache holds all of b.
  bool fits_own_cache = false;
};
WorkPartition partition_work(const Dims& b_view, const TileShape& shape, bool is_alone,
                             const TargetFacts& target);

/// Returns the partition of rows for contractions with K-blocking or AMX tiles.
RowBlocks row_blocks_of(const TilePlan& plan, const TargetFacts& target);

/// Returns how many column blocks run through the K-blocks of a reduction together.
std::int64_t column_group(const TilePlan& plan, const TargetFacts& target);

/// Returns how many column blocks a single row (GEMV) processes at once, each with its own weights:
/// the number of streams with the highest memory bandwidth. 1 if caches hold the weights, or if
/// blocks would be left over.
std::int64_t weight_streams(const TilePlan& plan, const TargetFacts& target);

/// Returns the prefetch distance, in elements, for packed panels without K-blocking: the next panel
/// if many rows use one; one memory latency ahead for weights that exceed a core's own cache;
/// otherwise 0, no prefetch.
std::int64_t panel_prefetch_of(const TilePlan& plan, const Statement* rows, unsigned rows_at_once,
                               const TargetFacts& target);

/// Returns how many steps of the reduction fit L1, for the columns and rows of one register tile.
unsigned k_block_for(const TileShape& shape, const TargetFacts& target);
/// Returns whether reading columns from a core's own cache for every row tile would use much of its
/// bandwidth, so that K-blocking pays.
bool gains_by_k_blocking(const TileShape& shape, const TargetFacts& target);

}  // namespace tenon::codegen::cpu
