#pragma once

#include "codegen/nest_names.h"
#include "target/facts.h"

#include <optional>
#include <vector>

namespace tenon::codegen::cpu {

/// Where the loops around a jammed one, of these extents, are too few items of work to share out:
/// in blocks of how many positions the jammed loop is cut. Blocks are whole tiles, so that as many
/// positions go together as before.
std::optional<std::int64_t> rows_in_block(const Dim& rows, unsigned rows_at_once,
                                          const std::vector<Dim>& around);

/// Blocks of so many rows, to stand outermost, for short sums whose results no cache holds: each
/// block then writes whole rows, where going down the columns would touch a page for each row.
/// Nothing for other sums.
std::optional<std::int64_t> rows_outermost(const Dim& rows, unsigned rows_at_once,
                                           std::int64_t result_bytes, std::int64_t cache_bytes);

/// How many lines that lie so many f32 apart a cache holds, one way left to what else is read: at
/// distances that are powers of two they take the same few places of it.
std::int64_t lines_in_cache(std::int64_t distance, const MemoryLevel& cache, unsigned line_bytes);

/// How many rows so many f32 apart lie in the first cache side by side: at distances that are
/// powers of two they take the same few places of it. One way is left to what else is read.
unsigned rows_in_cache(std::int64_t distance, const TargetFacts& target);

/// How the rows of a product whose sum is long are shared out, where its weights are read in panels
/// that stay in the first cache: in blocks of how many rows, and whether all blocks of rows are
/// done for one block of columns before the next, which reads the weights once where a core's cache
/// holds all rows. Else as many rows as it holds go through all columns.
struct RowBlocks {
  std::int64_t rows = 0;
  bool is_columns_first = true;
};
/// `row_bytes` is what one row reads, `items` how many blocks of columns and others there are;
/// blocks have at least `fewest` rows. Where no even parts give every unit its share, blocks are of
/// whole tiles of `tile_rows` and the last has what is left; 0: even parts only.
RowBlocks blocks_of_rows(std::int64_t rows, std::int64_t fewest, std::int64_t tile_rows,
                         double row_bytes, std::int64_t items, const TargetFacts& target);

/// How many blocks of columns go through such a sum together, part by part, so that rows that a
/// core's cache does not hold beside the weights come from the cache of all once for these and not
/// for each. As many as leave the processor's units an even share; 1 where rows are held. `around`
/// is how many items there are for each block of columns.
std::int64_t columns_together(std::int64_t column_blocks, std::int64_t around, double rows_bytes,
                              const TargetFacts& target);

/// Of images whose lines are such rows: how many go through all columns together, each of which is
/// `image_bytes`, before the next do. 0: all of them, for one block of columns after the other,
/// which reads the weights once and images as often as there are such blocks; that is less where a
/// core's cache holds them, or weights are many.
std::int64_t images_together(std::int64_t images, double image_bytes, double weight_bytes,
                             std::int64_t column_blocks, const TargetFacts& target);

}  // namespace tenon::codegen::cpu
