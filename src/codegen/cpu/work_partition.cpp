#include "codegen/cpu/work_partition.h"

#include "expr/access.h"

#include <algorithm>

namespace tenon::codegen::cpu {

// With 32 registers 14 rows fit without a gain in speed, and more row streams than the hardware
// prefetcher tracks cost time.
TileShape tile_for(unsigned register_count, unsigned register_bits) {
  return {register_count >= 32 ? 8U : 6U, register_bits / 32 * 2};
}

unsigned k_block_for(const TileShape& shape, const TargetFacts& target) {
  const double held = 0.875 * static_cast<double>(target.nearest().bytes);
  return static_cast<unsigned>(held / (4 * (shape.rows + shape.columns)));
}

bool gains_by_k_blocking(const TileShape& shape, const TargetFacts& target) {
  // Measured on Zen 4: 6x16 tiles use a fifth of the listed bandwidth and gain by K-blocking; 8x32
  // tiles use a seventh and do not.
  constexpr double kMuch = 1.0 / 6;
  const double step_cycles = shape.rows * shape.columns / target.multiply_adds_per_cycle();
  return 4.0 * shape.columns / step_cycles > kMuch * target.bytes_per_cycle(target.private_cache());
}

WorkPartition partition_work(const Dims& b_view, const TileShape& shape, bool is_alone,
                             const TargetFacts& target) {
  const auto close_bytes = static_cast<std::int64_t>(target.private_cache().bytes / 2);
  const std::int64_t shared_bytes = static_cast<std::int64_t>(target.llc_bytes_per_operand());
  std::int64_t bytes = 4;
  for (const Dim& dim : b_view) {
    bytes =
        std::min(shared_bytes + 1, dim.is_constant() ? bytes * dim.constant() : shared_bytes + 1);
  }
  WorkPartition partition;
  partition.fits_own_cache = bytes <= close_bytes;
  partition.keeps_rows = is_alone && partition.fits_own_cache != shape.is_loop_order_swapped;
  partition.splits_rows =
      is_alone && !partition.keeps_rows && !shape.is_loop_order_swapped && bytes <= shared_bytes;
  return partition;
}

namespace {

// Work items: column blocks times the loops around them, without lines that count as rows.
std::int64_t items_of(const TilePlan& plan) {
  Dim items = ceil_div(plan.column_count, plan.width);
  for (std::size_t k = 0; k < plan.others.size(); ++k) {
    if (plan.others[k] != plan.lines) items = items * plan.other_extents[k];
  }
  return items.value().value_or(1);
}

}  // namespace

RowBlocks row_blocks_of(const TilePlan& plan, const TargetFacts& target) {
  const std::int64_t count = plan.lines ? plan.line_count : plan.row_count.constant();
  const std::int64_t rows = plan.lines ? plan.row_count.constant() : 1;  // Rows per line.
  const std::int64_t tiles = plan.is_shared_by_rows ? 1 : kFewestTiles;
  const std::int64_t fewest =
      (tiles * static_cast<std::int64_t>(plan.rows_at_once) + rows - 1) / rows;
  const std::int64_t tile_rows = plan.lines || plan.is_shared_by_rows ? 0 : plan.rows_at_once;
  return blocks_of_rows(count, fewest, tile_rows, plan.row_bytes * static_cast<double>(rows),
                        items_of(plan), target);
}

std::int64_t column_group(const TilePlan& plan, const TargetFacts& target) {
  if (plan.depth == 0 || plan.lines || !plan.column_count.is_constant() ||
      plan.column_count.constant() % plan.width != 0)
    return 1;
  const std::int64_t column_blocks = plan.column_count.constant() / plan.width,
                     rows = row_blocks_of(plan, target).rows;
  const std::int64_t around =
      items_of(plan) / column_blocks * ((plan.row_count.constant() + rows - 1) / rows);
  return columns_together(column_blocks, around, plan.row_bytes * static_cast<double>(rows),
                          target);
}

namespace {

bool is_far(const TilePlan& plan, const TargetFacts& target) {
  return 4 * size_hint(product(plan.b_view)) >
         target.heuristics.streamed_caches * static_cast<double>(target.private_cache().bytes);
}

}  // namespace

std::int64_t weight_streams(const TilePlan& plan, const TargetFacts& target) {
  const std::int64_t streams = target.heuristics.weight_streams, block = plan.width * streams;
  const bool is_one_row = !plan.rows && !plan.is_paired;
  const bool is_even = plan.column_count.is_constant() && plan.column_count.constant() % block == 0;
  return is_one_row && is_even && is_far(plan, target) ? streams : 1;
}

std::int64_t panel_prefetch_of(const TilePlan& plan, const Statement* rows, unsigned rows_at_once,
                               const TargetFacts& target) {
  const bool has_limit = rows != nullptr && rows->limit.is_defined();
  if (rows != nullptr && !has_limit && size_hint(rows->extent) >= kFewestTiles * rows_at_once)
    return plan.reduction_length * plan.width;
  const bool is_one_tile = rows == nullptr || (!has_limit && rows->extent.is_constant() &&
                                               rows->extent.constant() <= rows_at_once);
  return is_one_tile && is_far(plan, target) ? target.heuristics.prefetch_bytes / 4 : 0;
}

}  // namespace tenon::codegen::cpu
