// Register tiling of contractions: the GEMM micro-kernel and its surrounding loops.
#include "codegen/cpu/register_tiles.h"

#include "base/error.h"
#include "codegen/cpu/collapsed_loops.h"
#include "codegen/cpu/reduction_vectors.h"
#include "codegen/cpu/schedule.h"
#include "codegen/cpu/work_partition.h"
#include "expr/access.h"
#include "nests/schedule/bind.h"
#include "nests/schedule/block_reduction.h"
#include "nests/schedule/loops.h"
#include "nests/schedule/pack.h"
#include "nests/schedule/reorder.h"
#include "nests/schedule/split.h"

#include <algorithm>

namespace tenon::codegen::cpu {

using nests::PackedLoop;
using nests::SplitLoop;

namespace {

// Packs the row operand tile by tile, steps of the reduction consecutive. The loop over tiles then
// replaces the rows in the partition among threads. Returns the loop within a tile.
std::size_t pack_rows(LoopNest& nest, Block& whole, TilePlan& plan,
                      std::vector<Packing>& packings) {
  const std::int64_t count = plan.row_count.constant(), tiles = count / plan.rows_at_once;
  const SplitLoop rows = split(nest, whole, *plan.rows, plan.rows_at_once, "t");
  std::vector<PackedLoop> order = plan.packed_rows;
  order.insert(order.begin(), {rows.outer, tiles});
  order.push_back({rows.inner, plan.rows_at_once});
  auto packing = pack(nest, whole, plan.a, order, count);
  TENON_ASSERT(packing, "rows that are worth packing can be");
  packings.push_back(std::move(*packing));
  if (plan.halved == plan.rows) {
    plan.halved = tiles % 2 == 0 ? std::optional(rows.outer) : std::nullopt;
    plan.halved_extent = tiles;
  }
  plan.rows = rows.outer;
  plan.row_count = tiles;
  plan.rows_at_once = 1;
  return rows.inner;
}

// Schedules the loops of `whole`, nested in the loops `around_it` of `nest`; loops outside of a
// tile become `outermost`.
std::optional<std::vector<Packing>> tile(LoopNest& nest, Block& whole,
                                         const std::vector<Statement>& around_it,
                                         const std::vector<bool>& may_pack, const TileShape& shape,
                                         LoopKind outermost, const TargetFacts& target) {
  const TileRoles roles = find_roles(whole, may_pack);
  if (!roles.refusal.empty() || shape.lanes_along_k) {
    if (!find_reduction_roles(whole, may_pack).refusal.empty()) return std::nullopt;
    return vectorise_reduction(nest, whole, around_it, may_pack, shape, outermost);
  }
  const bool is_alone = outermost == LoopKind::Parallel;
  TilePlan plan = plan_of(roles, around_it, may_pack, shape, is_alone, target);
  SplitLoop columns = split(nest, whole, plan.columns, plan.width);

  std::int64_t group = is_alone ? column_group(plan, target) : 1;
  std::optional<std::size_t> grouped;  // The loop over the column blocks of a group.
  if (group > 1) {
    const std::size_t sum = plan.reduction[plan.depth_level];
    const SplitLoop groups = split(nest, whole, columns.outer, group, "g"),
                    parts = split(nest, whole, sum, plan.depth);
    columns.outer = groups.outer;
    grouped = groups.inner;
    plan.reduction[plan.depth_level] = parts.outer;
    plan.reduction.insert(
        plan.reduction.begin() + static_cast<std::ptrdiff_t>(plan.depth_level) + 1, parts.inner);
    const auto at = std::ranges::find(plan.packed, sum, &PackedLoop::id);
    const Dim count = floor_div(at->extent, plan.depth);
    *at = {parts.inner, plan.depth};
    plan.packed.insert(plan.packed.insert(at, {groups.inner, group}), {parts.outer, count});
  }

  std::optional<std::size_t>
      streams;  // The loop over column blocks that one row processes at once.
  if (const std::int64_t count = may_pack[plan.b] ? weight_streams(plan, target) : 1; count > 1) {
    const SplitLoop groups = split(nest, whole, columns.outer, count, "g");
    columns.outer = groups.outer;
    streams = groups.inner;
    group = count;
    plan.packed.insert(plan.packed.begin(), {groups.inner, count});
  }

  SplitLoop pairs;
  if (plan.is_paired) {
    pairs = split(nest, whole, plan.reduction.back(), 2);
    for (PackedLoop& loop : plan.packed) {
      if (loop.id == plan.reduction.back()) loop = {pairs.outer, plan.pair_extent.constant() / 2};
    }
    plan.reduction.back() = pairs.outer;
  }

  // Packs b in reading order: consecutive steps of the innermost reduction loop read consecutive
  // vectors.
  std::vector<Packing> packings;
  if (may_pack[plan.b] && plan.column_count.is_constant()) {
    plan.packed.insert(plan.packed.begin(),
                       {columns.outer, ceil_div(plan.column_count, plan.width * group)});
    plan.packed.push_back({columns.inner, plan.width});
    if (plan.is_paired) plan.packed.push_back({pairs.inner, 2});
    // Evenly divided columns need no padding.
    const std::int64_t limit = plan.is_paired ? 2 * plan.packed.front().extent.constant()
                                              : plan.column_count.constant() / group;
    if (auto packing = pack(nest, whole, plan.b, plan.packed, limit)) {
      plan.b_view = nest.buffers[plan.b].dims;
      packings.push_back(std::move(*packing));
    }
  }

  const bool has_parts = plan.depth > 0 && !packings.empty();
  const bool has_blocks =
      // Row blocks sized by cache capacity.
      has_parts || (plan.is_shared_by_rows && !packings.empty());
  const WorkPartition partition =
      partition_work(plan.b_view, shape, is_alone && !has_blocks, target);
  if (packings.empty() && !partition.fits_own_cache && plan.ahead > 0)
    nest.buffers[plan.b].ahead = plan.ahead;
  const unsigned tile_rows = plan.rows_at_once;
  std::optional<std::size_t> tile_loop;  // Rows of one tile, if another loop iterates over tiles.
  if (!plan.packed_rows.empty()) tile_loop = pack_rows(nest, whole, plan, packings);
  std::vector<std::size_t> around = plan.others;
  std::vector<Dim> items = plan.other_extents;
  if (has_parts && plan.lines) {
    const auto lines = std::find(around.begin(), around.end(), *plan.lines);
    items.erase(items.begin() + (lines - around.begin()));
    around.erase(lines);
  }
  around.insert(partition.keeps_rows ? around.end() : around.begin(), columns.outer);
  items.push_back(ceil_div(plan.column_count, plan.width));
  if (has_blocks && is_alone) {
    const std::int64_t count = plan.lines ? plan.line_count : plan.row_count.constant();
    const RowBlocks blocks = row_blocks_of(plan, target);
    std::size_t& blocked = plan.lines ? *plan.lines : *plan.rows;
    if (blocks.rows != count) {
      const SplitLoop parts = split(nest, whole, blocked, blocks.rows, "b");
      blocked = parts.inner;
      around.insert(blocks.is_columns_first ? around.end() : around.begin(), parts.outer);
    }
    if (plan.images) {
      const double weights = 4 * size_hint(product(plan.b_view)),
                   image = plan.row_bytes * size_hint(plan.row_count * count);
      const auto column_blocks =
          static_cast<std::int64_t>(size_hint(ceil_div(plan.column_count, plan.width)));
      if (const std::int64_t together =
              images_together(plan.image_count, image, weights, column_blocks, target)) {
        const auto images = std::find(around.begin(), around.end(), *plan.images);
        std::size_t outer = *plan.images;
        if (together > 1) {
          const SplitLoop parts = split(nest, whole, *plan.images, together, "b");
          *images = parts.inner;
          outer = parts.outer;
        } else {
          around.erase(images);
        }
        around.insert(around.begin(), outer);
      }
    }
  } else if (partition.splits_rows && plan.halved) {
    const SplitLoop splits_rows =
        split(nest, whole, *plan.halved, plan.halved_extent.constant() / 2);
    if (plan.rows == plan.halved) plan.rows = splits_rows.inner;
    std::replace(around.begin(), around.end(), *plan.halved, splits_rows.inner);
    around.insert(around.begin(), splits_rows.outer);
  } else if (is_alone && plan.rows && !plan.has_row_limit) {
    if (const auto block =
            rows_outermost(plan.row_count, plan.rows_at_once, plan.result_bytes,
                           static_cast<std::int64_t>(target.llc_bytes_per_operand()))) {
      const SplitLoop blocks = split(nest, whole, *plan.rows, *block, "b");
      plan.has_row_limit = !(mod(plan.row_count, *block) == Dim(0));
      items.push_back(ceil_div(plan.row_count, *block));
      plan.row_count = *block;
      plan.rows = blocks.inner;
      around.insert(around.begin(), blocks.outer);
    }
    const auto block =
        plan.has_row_limit ? std::nullopt : rows_in_block(plan.row_count, plan.rows_at_once, items);
    if (block) {
      const SplitLoop blocks = split(nest, whole, *plan.rows, *block, "b");
      plan.rows = blocks.inner;
      around.push_back(blocks.outer);
    }
  }
  std::vector<std::size_t> order = around;
  order.push_back(columns.inner);
  std::vector<std::size_t> inside;  // Loops inside the K-blocks.
  if (grouped) order.push_back(*grouped);
  if (grouped) inside.push_back(*grouped);
  if (has_parts && plan.lines) inside.push_back(*plan.lines);
  if (has_parts) inside.push_back(*plan.rows);
  if (has_parts && plan.lines) order.push_back(*plan.lines);
  if (plan.rows) order.push_back(*plan.rows);
  if (streams) order.push_back(*streams);
  if (tile_loop) order.push_back(*tile_loop);
  reorder(whole, order);
  if (plan.is_paired) {
    std::vector<std::size_t> sum = plan.reduction;
    sum.push_back(pairs.inner);
    reorder(whole, sum);
    bind_loop(whole, pairs.inner, LoopKind::Serial, 2);
  } else {
    reorder(whole, plan.reduction);
  }
  for (const std::size_t loop : around) bind_loop(whole, loop, outermost);
  bind_loop(whole, columns.inner, LoopKind::Vector, plan.width);
  if (plan.rows) bind_loop(whole, tile_loop.value_or(*plan.rows), LoopKind::Jam, tile_rows);
  if (streams) bind_loop(whole, *streams, LoopKind::Jam, static_cast<unsigned>(group));
  if (has_parts) {
    if (!grouped) split(nest, whole, plan.reduction[plan.depth_level], plan.depth);
    block_reduction(nest, whole, inside, columns.inner, plan.depth_level + 1);
    // Prefetches the next panel while all rows use the current one.
    nest.buffers[plan.b].ahead = plan.depth_length * plan.width;
  } else if (plan.is_shared_by_rows && !packings.empty()) {
    nest.buffers[plan.b].ahead = plan.reduction_length * plan.width;
  } else if (!packings.empty() && !plan.is_paired && !tile_loop &&
             gains_by_k_blocking(shape, target)) {
    nest.buffers[plan.b].ahead = panel_prefetch_of(
        plan, plan.rows ? nests::find_loop(whole, *plan.rows) : nullptr, tile_rows, target);
  }
  if (is_alone && !plan.is_paired && !plan.lines && !tile_loop &&
      gains_by_k_blocking(shape, target))
    nest.buffers[plan.a].ahead = plan.rows_ahead;
  return packings;
}

// Properties of the loops that become tiles; loops around stages keep their order.
TileFacts facts_of(const TileRoles& roles, bool is_stage, const TargetFacts& target) {
  TileFacts facts;
  facts.refusal = roles.refusal;
  if (!facts.refusal.empty()) return facts;
  facts.row_count =
      roles.rows == nullptr ? std::optional<std::int64_t>(1) : roles.rows->extent.value();
  facts.column_count = static_cast<std::int64_t>(size_hint(roles.columns->extent));
  if (roles.rows != nullptr)
    facts.max_rows = rows_in_cache(roles.contraction.a, roles.rows->id, target);
  facts.has_other_loops =
      !is_stage && roles.contraction.parallel.size() > (roles.rows == nullptr ? 1U : 2U);
  return facts;
}

}  // namespace

Block* stages_of(LoopNest& nest) {
  Block* block = &nest.body;
  while (block->size() == 1 && block->front().kind == Statement::Kind::Loop &&
         block->front().is_independent) {
    block = &block->front().body;
  }
  const bool are_loops = std::all_of(block->begin(), block->end(), [](const Statement& statement) {
    return statement.kind == Statement::Kind::Loop && statement.is_independent;
  });
  return block->size() > 1 && are_loops ? block : nullptr;
}

namespace {

// Records where K-blocking is possible, in the nest or in its first stage with a contraction.
void note_depth(LoopNest nest, const std::vector<bool>& may_pack, const TargetFacts& target,
                TileFacts& facts) {
  TileShape shape = tile_for(target.registers, target.vector_bits);
  shape.depth = k_block_for(shape, target);
  const Block* stages = stages_of(nest);
  if (stages == nullptr) collapse_rows(nest, true);
  for (std::size_t k = 0; k < (stages == nullptr ? 1 : stages->size()); ++k) {
    const Block stage = stages == nullptr ? nest.body : Block{(*stages)[k]};
    const TileRoles roles = find_roles(stage, may_pack);
    if (!roles.refusal.empty()) continue;
    facts.pair_refusal = pair_refusal(roles, may_pack, shape, target);
    facts.has_amx_tiles = facts.pair_refusal.empty() && fits_amx_tiles(roles, target);
    facts.depth_refusal = depth_refusal(roles, may_pack, shape, stages == nullptr);
    return;
  }
}

}  // namespace

TileFacts tile_facts(LoopNest nest, const std::vector<bool>& may_pack, const TargetFacts& target) {
  const LoopNest given = nest;
  collapse_rows(nest);
  TileRoles roles = find_roles(nest.body, may_pack);
  std::string dots = find_reduction_roles(nest.body, may_pack).refusal;
  const Block* stages = stages_of(nest);
  for (std::size_t k = 0; stages != nullptr && k < stages->size() && !roles.refusal.empty(); ++k) {
    const Block stage{(*stages)[k]};
    TileRoles found = find_roles(stage, may_pack);
    // The first contraction represents all of them.
    if (found.refusal.empty()) {
      TileFacts facts = facts_of(found, true, target);
      note_depth(given, may_pack, target, facts);
      return facts;
    }
    if (!dots.empty()) dots = find_reduction_roles(stage, may_pack).refusal;
  }
  TileFacts facts = facts_of(roles, false, target);
  // Columns that fill no vector leave scalar remainders.
  const std::int64_t lanes = target.vector_bits / 32;
  const bool has_few = facts.column_count < lanes && facts.column_count % (lanes / 2) != 0;
  if (!facts.refusal.empty() || (has_few && stages == nullptr)) facts.reduction_refusal = dots;
  if (facts.refusal.empty()) note_depth(given, may_pack, target, facts);
  return facts;
}

std::optional<std::size_t> rows_to_pack(LoopNest nest, const std::vector<bool>& may_pack,
                                        const TileShape& shape, const TargetFacts& target) {
  if (stages_of(nest) != nullptr || shape.depth > 0 || shape.is_paired) return std::nullopt;
  collapse_rows(nest);
  const TileRoles roles = find_roles(nest.body, may_pack);
  if (!roles.refusal.empty() || roles.rows == nullptr) return std::nullopt;
  const unsigned rows =
      std::min(shape.rows, rows_in_cache(roles.contraction.a, roles.rows->id, target));
  if (!should_pack_rows(roles, rows, shape.columns, target)) return std::nullopt;
  return roles.contraction.a->id;
}

std::optional<std::vector<Packing>> reorder_stages(LoopNest& nest,
                                                   const StageReordering& reordering) {
  Block* stages = stages_of(nest);
  if (stages == nullptr) return reordering(nest.body, {}, LoopKind::Parallel);
  std::vector<Statement> around;
  for (const Block* block = &nest.body; block != stages; block = &block->front().body) {
    around.push_back(block->front());
    around.back().body.clear();
  }
  std::vector<Packing> packings;
  bool has_tiles = false;
  Block reordered;
  for (const Statement& statement : *stages) {
    Block stage{statement};
    if (const auto made = reordering(stage, around, LoopKind::Serial)) {
      packings.insert(packings.end(), made->begin(), made->end());
      has_tiles = true;
    } else {
      vectorise(nest, stage);
    }
    reordered.insert(reordered.end(), stage.begin(), stage.end());
  }
  if (!has_tiles) return std::nullopt;
  *stages = std::move(reordered);
  for (Block* block = &nest.body; block->front().is_independent && block != stages;
       block = &block->front().body) {
    block->front().loop = LoopKind::Parallel;
  }
  return packings;
}

std::optional<std::vector<Packing>> tile_contraction(LoopNest& nest,
                                                     const std::vector<bool>& may_pack,
                                                     const TileShape& shape,
                                                     const TargetFacts& target) {
  if (stages_of(nest) == nullptr) collapse_rows(nest, shape.depth > 0);
  return reorder_stages(
      nest, [&](Block& stage, const std::vector<Statement>& around, LoopKind outermost) {
        return tile(nest, stage, around, may_pack, shape, outermost, target);
      });
}

}  // namespace tenon::codegen::cpu
