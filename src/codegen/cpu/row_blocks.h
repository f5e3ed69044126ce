#pragma once

#include "codegen/nest_names.h"
#include "target/facts.h"

#include <optional>
#include <vector>

namespace tenon::codegen::cpu {

/// Returns the block size by which the jammed row loop is split if the loops around it have too few
/// iterations for all threads. Blocks are multiples of the register tile's rows.
std::optional<std::int64_t> rows_in_block(const Dim& rows, unsigned rows_at_once,
                                          const std::vector<Dim>& around);

/// Returns the size of row blocks to iterate outermost, for short reductions with results that
/// exceed the caches: each block then writes whole rows, whereas a column-wise order would touch
/// one page per row. No value for other contractions.
std::optional<std::int64_t> rows_outermost(const Dim& rows, unsigned rows_at_once,
                                           std::int64_t result_bytes, std::int64_t cache_bytes);

/// Returns how many lines at this distance (in f32 elements) fit the cache's sets with one way left
/// for other data: lines at power-of-two distances map to few sets.
std::int64_t lines_in_cache(std::int64_t distance, const MemoryLevel& cache, unsigned line_bytes);

/// Returns how many rows at this distance (in f32 elements) the L1 cache holds together: rows at
/// power-of-two distances map to few sets. One way is left for other data.
unsigned rows_in_cache(std::int64_t distance, const TargetFacts& target);

/// Partition of the rows of a contraction with K-blocking, whose packed weight panels stay in L1.
/// `is_columns_first`: all row blocks of one column block are computed before the next, so that
/// weights are read once; requires that a core's own cache holds all rows. Otherwise each block is
/// sized to that cache and runs through all columns.
struct RowBlocks {
  std::int64_t rows = 0;
  bool is_columns_first = true;
};
/// `row_bytes` is the size of one row's operand, `items` the number of column blocks and other work
/// items. Blocks have at least `fewest` rows. If no even partition balances the units, blocks are
/// whole register tiles of `tile_rows` and the last one is smaller; 0: even partitions only.
RowBlocks blocks_of_rows(std::int64_t rows, std::int64_t fewest, std::int64_t tile_rows,
                         double row_bytes, std::int64_t items, const TargetFacts& target);

/// Returns how many column blocks run through the K-blocks of a reduction together. Rows that do
/// not fit a core's own cache with the weights are then read from the last-level cache once per
/// group instead of once per block. The largest group that still balances the units; 1 if the rows
/// fit. `around` is the number of work items per column block.
std::int64_t columns_together(std::int64_t column_blocks, std::int64_t around, double rows_bytes,
                              const TargetFacts& target);

/// Returns how many images of `image_bytes` run through all columns together if the rows are lines
/// of images. 0: all images run through one column block after another, which reads weights once
/// and images once per column block; chosen if it reads fewer bytes, as with images that fit a
/// core's own cache or with large weights.
std::int64_t images_together(std::int64_t images, double image_bytes, double weight_bytes,
                             std::int64_t column_blocks, const TargetFacts& target);

}  // namespace tenon::codegen::cpu
