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

// Schedules the loops of a contraction: splits them into tiles and blocks, packs operands, orders
// and binds the loops.
class RegisterTiler {
 public:
  // `whole` is nested in loops of `nest`; loops outside of a tile become `outermost`.
  RegisterTiler(LoopNest& nest, Block& whole, TilePlan plan, const TileShape& shape,
                LoopKind outermost, const TargetFacts& target)
      : nest_(nest),
        whole_(whole),
        plan_(std::move(plan)),
        shape_(shape),
        outermost_(outermost),
        is_alone_(outermost == LoopKind::Parallel),
        target_(target) {}

  std::vector<Packing> run(const std::vector<bool>& may_pack) {
    columns_ = split(nest_, whole_, plan_.columns, plan_.width);
    group_columns();
    if (may_pack[plan_.b]) stream_weights();
    split_pairs();
    if (may_pack[plan_.b] && plan_.column_count.is_constant()) pack_columns();
    has_parts_ = plan_.depth > 0 && !packings_.empty();
    // Row blocks sized by cache capacity.
    const bool has_blocks = has_parts_ || (plan_.is_shared_by_rows && !packings_.empty());
    const WorkPartition partition =
        partition_work(plan_.b_view, shape_, is_alone_ && !has_blocks, target_);
    if (packings_.empty() && !partition.fits_own_cache && plan_.ahead > 0)
      nest_.buffers[plan_.b].ahead = plan_.ahead;
    tile_rows_ = plan_.rows_at_once;
    if (!plan_.packed_rows.empty()) pack_rows();
    order_outer_loops(partition);
    if (has_blocks && is_alone_) {
      block_rows();
    } else if (partition.splits_rows && plan_.halved) {
      halve_rows();
    } else if (is_alone_ && plan_.rows && !plan_.has_row_limit) {
      share_rows();
    }
    const std::vector<std::size_t> inside = order_loops();
    bind_loops();
    if (has_parts_) block_reduction_loops(inside);
    choose_prefetches();
    return std::move(packings_);
  }

 private:
  // Column blocks that run through the K-blocks together.
  void group_columns() {
    group_ = is_alone_ ? column_group(plan_, target_) : 1;
    if (group_ <= 1) return;
    const std::size_t sum = plan_.reduction[plan_.depth_level];
    const SplitLoop groups = split(nest_, whole_, columns_.outer, group_, "g"),
                    parts = split(nest_, whole_, sum, plan_.depth);
    columns_.outer = groups.outer;
    grouped_ = groups.inner;
    plan_.reduction[plan_.depth_level] = parts.outer;
    plan_.reduction.insert(
        plan_.reduction.begin() + static_cast<std::ptrdiff_t>(plan_.depth_level) + 1, parts.inner);
    const auto at = std::ranges::find(plan_.packed, sum, &PackedLoop::id);
    const Dim count = floor_div(at->extent, plan_.depth);
    *at = {parts.inner, plan_.depth};
    plan_.packed.insert(plan_.packed.insert(at, {groups.inner, group_}), {parts.outer, count});
  }

  // Column blocks that one row processes at once.
  void stream_weights() {
    const std::int64_t count = weight_streams(plan_, target_);
    if (count <= 1) return;
    const SplitLoop groups = split(nest_, whole_, columns_.outer, count, "g");
    columns_.outer = groups.outer;
    streams_ = groups.inner;
    group_ = count;
    plan_.packed.insert(plan_.packed.begin(), {groups.inner, count});
  }

  void split_pairs() {
    if (!plan_.is_paired) return;
    pairs_ = split(nest_, whole_, plan_.reduction.back(), 2);
    for (PackedLoop& loop : plan_.packed) {
      if (loop.id == plan_.reduction.back())
        loop = {pairs_.outer, plan_.pair_extent.constant() / 2};
    }
    plan_.reduction.back() = pairs_.outer;
  }

  // Packs b in reading order: consecutive steps of the innermost reduction loop read consecutive
  // vectors.
  void pack_columns() {
    plan_.packed.insert(plan_.packed.begin(),
                        {columns_.outer, ceil_div(plan_.column_count, plan_.width * group_)});
    plan_.packed.push_back({columns_.inner, plan_.width});
    if (plan_.is_paired) plan_.packed.push_back({pairs_.inner, 2});
    // Evenly divided columns need no padding.
    const std::int64_t limit = plan_.is_paired ? 2 * plan_.packed.front().extent.constant()
                                               : plan_.column_count.constant() / group_;
    if (auto packing = pack(nest_, whole_, plan_.b, plan_.packed, limit)) {
      plan_.b_view = nest_.buffers[plan_.b].dims;
      packings_.push_back(std::move(*packing));
    }
  }

  // Packs the row operand tile by tile, steps of the reduction consecutive. The loop over tiles
  // then replaces the rows in the partition among threads.
  void pack_rows() {
    const std::int64_t count = plan_.row_count.constant(), tiles = count / plan_.rows_at_once;
    const SplitLoop rows = split(nest_, whole_, *plan_.rows, plan_.rows_at_once, "t");
    std::vector<PackedLoop> order = plan_.packed_rows;
    order.insert(order.begin(), {rows.outer, tiles});
    order.push_back({rows.inner, plan_.rows_at_once});
    auto packing = pack(nest_, whole_, plan_.a, order, count);
    TENON_ASSERT(packing, "rows that are worth packing can be");
    packings_.push_back(std::move(*packing));
    if (plan_.halved == plan_.rows) {
      plan_.halved = tiles % 2 == 0 ? std::optional(rows.outer) : std::nullopt;
      plan_.halved_extent = tiles;
    }
    plan_.rows = rows.outer;
    plan_.row_count = tiles;
    plan_.rows_at_once = 1;
    tile_loop_ = rows.inner;
  }

  void order_outer_loops(const WorkPartition& partition) {
    around_ = plan_.others;
    items_ = plan_.other_extents;
    if (has_parts_ && plan_.lines) {
      const auto lines = std::find(around_.begin(), around_.end(), *plan_.lines);
      items_.erase(items_.begin() + (lines - around_.begin()));
      around_.erase(lines);
    }
    around_.insert(partition.keeps_rows ? around_.end() : around_.begin(), columns_.outer);
    items_.push_back(ceil_div(plan_.column_count, plan_.width));
  }

  void block_rows() {
    const std::int64_t count = plan_.lines ? plan_.line_count : plan_.row_count.constant();
    const RowBlocks blocks = row_blocks_of(plan_, target_);
    std::size_t& blocked = plan_.lines ? *plan_.lines : *plan_.rows;
    if (blocks.rows != count) {
      const SplitLoop parts = split(nest_, whole_, blocked, blocks.rows, "b");
      blocked = parts.inner;
      around_.insert(blocks.is_columns_first ? around_.end() : around_.begin(), parts.outer);
    }
    if (plan_.images) block_images(count);
  }

  // Images that run through all columns together become the outermost loop.
  void block_images(std::int64_t lines) {
    const double weights = 4 * size_hint(product(plan_.b_view)),
                 image = plan_.row_bytes * size_hint(plan_.row_count * lines);
    const auto column_blocks =
        static_cast<std::int64_t>(size_hint(ceil_div(plan_.column_count, plan_.width)));
    const std::int64_t together =
        images_together(plan_.image_count, image, weights, column_blocks, target_);
    if (together == 0) return;
    const auto images = std::find(around_.begin(), around_.end(), *plan_.images);
    std::size_t outer = *plan_.images;
    if (together > 1) {
      const SplitLoop parts = split(nest_, whole_, *plan_.images, together, "b");
      *images = parts.inner;
      outer = parts.outer;
    } else {
      around_.erase(images);
    }
    around_.insert(around_.begin(), outer);
  }

  void halve_rows() {
    const SplitLoop halves =
        split(nest_, whole_, *plan_.halved, plan_.halved_extent.constant() / 2);
    if (plan_.rows == plan_.halved) plan_.rows = halves.inner;
    std::replace(around_.begin(), around_.end(), *plan_.halved, halves.inner);
    around_.insert(around_.begin(), halves.outer);
  }

  void share_rows() {
    if (const auto block =
            rows_outermost(plan_.row_count, plan_.rows_at_once, plan_.result_bytes,
                           static_cast<std::int64_t>(target_.llc_bytes_per_operand()))) {
      const SplitLoop blocks = split(nest_, whole_, *plan_.rows, *block, "b");
      plan_.has_row_limit = !(mod(plan_.row_count, *block) == Dim(0));
      items_.push_back(ceil_div(plan_.row_count, *block));
      plan_.row_count = *block;
      plan_.rows = blocks.inner;
      around_.insert(around_.begin(), blocks.outer);
    }
    if (plan_.has_row_limit) return;
    if (const auto block = rows_in_block(plan_.row_count, plan_.rows_at_once, items_)) {
      const SplitLoop blocks = split(nest_, whole_, *plan_.rows, *block, "b");
      plan_.rows = blocks.inner;
      around_.push_back(blocks.outer);
    }
  }

  // Returns the loops inside the K-blocks.
  std::vector<std::size_t> order_loops() {
    std::vector<std::size_t> order = around_, inside;
    order.push_back(columns_.inner);
    const auto add = [](std::vector<std::size_t>& loops, const std::optional<std::size_t>& loop) {
      if (loop) loops.push_back(*loop);
    };
    add(order, grouped_);
    add(inside, grouped_);
    if (has_parts_) {
      add(inside, plan_.lines);
      add(inside, plan_.rows);
      add(order, plan_.lines);
    }
    add(order, plan_.rows);
    add(order, streams_);
    add(order, tile_loop_);
    reorder(whole_, order);
    std::vector<std::size_t> sum = plan_.reduction;
    if (plan_.is_paired) sum.push_back(pairs_.inner);
    reorder(whole_, sum);
    return inside;
  }

  void bind_loops() {
    if (plan_.is_paired) bind_loop(whole_, pairs_.inner, LoopKind::Serial, 2);
    for (const std::size_t loop : around_) bind_loop(whole_, loop, outermost_);
    bind_loop(whole_, columns_.inner, LoopKind::Vector, plan_.width);
    if (plan_.rows) bind_loop(whole_, tile_loop_.value_or(*plan_.rows), LoopKind::Jam, tile_rows_);
    if (streams_) bind_loop(whole_, *streams_, LoopKind::Jam, static_cast<unsigned>(group_));
  }

  // K-blocking.
  void block_reduction_loops(const std::vector<std::size_t>& inside) {
    if (!grouped_) split(nest_, whole_, plan_.reduction[plan_.depth_level], plan_.depth);
    block_reduction(nest_, whole_, inside, columns_.inner, plan_.depth_level + 1);
  }

  void choose_prefetches() {
    std::int64_t& panel = nest_.buffers[plan_.b].ahead;
    const bool gains = gains_by_k_blocking(shape_, target_);
    if (has_parts_) {
      // The next panel, while all rows use the current one.
      panel = plan_.depth_length * plan_.width;
    } else if (plan_.is_shared_by_rows && !packings_.empty()) {
      panel = plan_.reduction_length * plan_.width;
    } else if (!packings_.empty() && !plan_.is_paired && !tile_loop_ && gains) {
      panel = panel_prefetch_of(plan_, plan_.rows ? nests::find_loop(whole_, *plan_.rows) : nullptr,
                                tile_rows_, target_);
    }
    if (is_alone_ && !plan_.is_paired && !plan_.lines && !tile_loop_ && gains)
      nest_.buffers[plan_.a].ahead = plan_.rows_ahead;
  }

  LoopNest& nest_;
  Block& whole_;
  TilePlan plan_;
  const TileShape& shape_;
  const LoopKind outermost_;
  const bool is_alone_;  // No outer loops are shared with other stages.
  const TargetFacts& target_;
  SplitLoop columns_, pairs_;
  std::int64_t group_ = 1;
  std::optional<std::size_t> grouped_;  // The loop over the column blocks of a group.
  std::optional<std::size_t> streams_;  // The loop over column blocks that a row processes at once.
  std::optional<std::size_t> tile_loop_;  // Rows of one tile, if another loop iterates over tiles.
  std::vector<std::size_t> around_;       // Loops outside of a tile.
  std::vector<Dim> items_;                // Their numbers of iterations.
  std::vector<Packing> packings_;
  bool has_parts_ = false;  // K-blocks.
  unsigned tile_rows_ = 1;
};

// Schedules the loops of `whole`, nested in the loops `around_it` of `nest`.
std::optional<std::vector<Packing>> tile(LoopNest& nest, Block& whole,
                                         const std::vector<Statement>& around_it,
                                         const std::vector<bool>& may_pack, const TileShape& shape,
                                         LoopKind outermost, const TargetFacts& target) {
  const TileRoles roles = find_roles(whole, may_pack);
  if (!roles.refusal.empty() || shape.lanes_along_k) {
    if (!find_reduction_roles(whole, may_pack).refusal.empty()) return std::nullopt;
    return vectorise_reduction(nest, whole, around_it, may_pack, shape, outermost);
  }
  TilePlan plan =
      plan_of(roles, around_it, may_pack, shape, outermost == LoopKind::Parallel, target);
  return RegisterTiler(nest, whole, std::move(plan), shape, outermost, target).run(may_pack);
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
