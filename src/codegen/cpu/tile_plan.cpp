#include "codegen/cpu/tile_plan.h"

#include "base/error.h"
#include "codegen/cpu/row_blocks.h"
#include "expr/access.h"
#include "nests/bf16_dot.h"
#include "nests/stride.h"
#include "target/bf16.h"

#include <algorithm>

namespace tenon::codegen::cpu {

using nests::Stride;

namespace {

// The loop to halve for two threads: the outermost independent of b, if there are enough rows to
// amortize reading b twice.
const Statement* loop_to_halve(const Contraction& c, const Statement* columns,
                               const Statement* rows) {
  constexpr std::int64_t kEnoughRows = 96;
  const Statement* outermost = nullptr;
  std::int64_t count = 1;
  for (const Statement* loop : c.parallel) {
    if (loop == columns || stride_along(c.b, loop->id) != Stride::Zero) continue;
    if (!loop->extent.is_constant()) return nullptr;
    count *= loop->extent.constant();
    const bool is_even = loop->extent.constant() % 2 == 0 && loop->extent.constant() > 0;
    if (outermost == nullptr && is_even && (loop != rows || loop->extent.constant() >= 64))
      outermost = loop;
  }
  return count >= kEnoughRows ? outermost : nullptr;
}

// A short reduction: writing the result takes most of the time.
bool is_short(const Contraction& contraction) {
  constexpr double kShort = 128;
  double length = 1;
  for (const Statement* loop : contraction.reduction) length *= size_hint(loop->extent);
  return length <= kShort;
}

std::int64_t result_bytes(const Contraction& contraction) {
  std::int64_t bytes = 4;
  for (const Statement* loop : contraction.parallel)
    bytes *= static_cast<std::int64_t>(size_hint(loop->extent));
  return bytes;
}

// Software prefetch distance in elements along columns; 0: no prefetch. Unpacked columns are one or
// two cache lines per row, a pattern that hardware prefetchers do not detect; with few row tiles
// each access waits for memory.
std::int64_t fetched_ahead(const Contraction& c, const std::vector<const Statement*>& reduction,
                           const Statement* rows, const TargetFacts& target) {
  constexpr std::int64_t kFewRows = 32, kTurns = 12;
  const double row_count = rows == nullptr ? 1 : size_hint(rows->extent);
  const auto distance = distance_along(c.b, reduction.back()->id);
  if (row_count > kFewRows || !distance ||
      *distance < 4 * static_cast<std::int64_t>(target.line_bytes))
    return 0;
  return kTurns * *distance;
}

// Prefetch distance for rows that exceed a core's own cache: hardware prefetchers follow each row,
// but not the jump to the next row tile.
std::int64_t rows_ahead(const TileRoles& roles, unsigned rows_at_once, const TargetFacts& target) {
  constexpr std::int64_t kLongReduction = 64;
  const Contraction& c = roles.contraction;
  if (roles.rows == nullptr || c.reduction.size() != 1 || c.a->bounds != Bounds::Inside) return 0;
  const Dim& length = c.reduction.front()->extent;
  const double bytes =
      static_cast<double>(info(c.a->dtype).storage_bytes) * size_hint(product(c.a->view));
  const bool is_long = length.is_constant() && length.constant() >= kLongReduction;
  if (!is_long || bytes < static_cast<double>(target.private_cache().bytes)) return 0;
  return rows_at_once * distance_along(c.a, roles.rows->id).value_or(0);
}

// K-blocking without remainder: a reduction loop and the block size along it. Loops around it run
// one position at a time.
struct Depth {
  std::size_t level = 0;  // The blocked loop, counted from the outermost.
  std::int64_t positions = 0, inner = 1, all = 1;
  std::string refusal;
};
Depth depth_of(const std::vector<const Statement*>& reduction, std::int64_t most) {
  Depth depth;
  depth.refusal = "K is symbolic";
  for (const Statement* loop : reduction) {
    if (!loop->extent.is_constant() || loop->limit.is_defined()) return depth;
    depth.all *= loop->extent.constant();
  }
  depth.refusal = concat("its sum of ", depth.all, " is not longer than ", most);
  if (depth.all <= most) return depth;
  depth.inner = depth.all / reduction.front()->extent.constant();
  while (depth.inner > most) depth.inner /= reduction[++depth.level]->extent.constant();
  const std::int64_t outer = reduction[depth.level]->extent.constant();
  for (std::int64_t positions = 1; positions * depth.inner <= most; ++positions) {
    if (outer % positions == 0) depth.positions = positions;
  }
  const bool is_short = depth.positions * depth.inner < most / 4;
  depth.refusal =
      is_short ? concat("its sum of ", depth.all, " has no parts of ", most / 4, " to ", most) : "";
  return depth;
}

bool has_few_rows(const TileRoles& roles, const TileShape& shape) {
  return roles.rows->extent.constant() < kFewestTiles * shape.rows;
}

}  // namespace

std::string pair_refusal(const TileRoles& roles, const std::vector<bool>& may_pack,
                         const TileShape& shape, const TargetFacts& target) {
  if (bf16_instructions(target).empty()) return "the processor has no instructions for it";
  const Contraction& c = roles.contraction;
  const Statement* loop = may_pack[c.b->id] ? bf16_dot_loop(c, c.a, c.b) : nullptr;
  if (loop == nullptr) return "not a bf16 contraction with a constant operand and an even K";
  if (sort_by_stride(c.reduction, c.a).back() != loop) return "the innermost loop is another one";
  if (roles.rows == nullptr) return "the constant operand is not reused along rows";
  const Dim& columns = roles.columns->extent;
  if (!columns.is_constant() || columns.constant() % shape.columns != 0)
    return concat("N is not a multiple of ", shape.columns);
  return "";
}

// An AMX tile holds 32 bf16 elements of the reduction per row; two tiles cover rows and two cover
// columns.
bool fits_amx_tiles(const TileRoles& roles, const TargetFacts& target) {
  constexpr std::int64_t kFewestRows = 4, kAmxReduction = 32;
  const Dim &rows = roles.rows->extent,
            &contraction =
                sort_by_stride(roles.contraction.reduction, roles.contraction.a).back()->extent;
  return bf16_instructions(target) == "amx-bf16" && rows.is_constant() &&
         rows.constant() >= kFewestRows && !roles.rows->limit.is_defined() &&
         contraction.constant() % kAmxReduction == 0;
}

std::string depth_refusal(const TileRoles& roles, const std::vector<bool>& may_pack,
                          const TileShape& shape, bool may_take_lines) {
  const std::string few = "M is small or symbolic";
  if (roles.rows == nullptr || !roles.rows->extent.is_constant() || roles.rows->limit.is_defined())
    return few;
  if (has_few_rows(roles, shape)) {
    const Statement* lines = may_take_lines ? lines_around(roles) : nullptr;
    if (lines == nullptr ||
        lines->extent.constant() * roles.rows->extent.constant() < kFewestTiles * shape.rows)
      return few;
  }
  const bool packs = may_pack[roles.contraction.b->id] && can_be_repacked(roles.contraction.b) &&
                     roles.columns->extent.is_constant();
  if (!packs) return "the operand along columns is not constant";
  return depth_of(sort_by_stride(roles.contraction.reduction, roles.contraction.a), shape.depth)
      .refusal;
}

// Returns whether the row operand should be packed by reduction step: if each step lies in a page
// of its own, its lines map to too few cache sets to survive until the next tile, and are reread
// from the last-level cache for every column block. That must cost more than the copy.
bool should_pack_rows(const TileRoles& roles, unsigned rows_at_once, unsigned width,
                      const TargetFacts& target) {
  constexpr std::int64_t kPageElements = 1024;
  constexpr double kPays = 2;
  const Contraction& c = roles.contraction;
  if (roles.rows == nullptr || c.a->bounds != Bounds::Inside || c.a->dtype != DType::F32)
    return false;
  const Dim& rows = roles.rows->extent;
  if (roles.rows->limit.is_defined() || !rows.is_constant() || rows.constant() % rows_at_once != 0)
    return false;
  if (stride_along(c.a, roles.rows->id) != Stride::Unit) return false;
  double steps = 1, tiles = 1.0 / (rows_at_once * width);
  for (const auto* loops : {&c.parallel, &c.reduction}) {
    for (const Statement* loop : *loops) {
      if (!loop->extent.is_constant() || loop->limit.is_defined() || !distance_along(c.a, loop->id))
        return false;
      (loops == &c.reduction ? steps : tiles) *= static_cast<double>(loop->extent.constant());
    }
  }
  const std::int64_t distance =
      std::abs(*distance_along(c.a, sort_by_stride(c.reduction, c.a).back()->id));
  if (distance < kPageElements ||
      steps <=
          static_cast<double>(lines_in_cache(distance, target.private_cache(), target.line_bytes)))
    return false;
  const double waits =
      tiles * steps * target.line_bytes / target.bytes_per_cycle(target.last_level_cache());
  const double copy =
      2 * 4 * size_hint(product(c.a->view)) / target.bytes_per_cycle(target.memory());
  return waits > kPays * copy;
}

TilePlan plan_of(const TileRoles& roles, const std::vector<Statement>& around_it,
                 const std::vector<bool>& may_pack, const TileShape& shape, bool is_alone,
                 const TargetFacts& target) {
  const Contraction& c = roles.contraction;
  const std::vector<const Statement*> reduction = sort_by_stride(c.reduction, c.a);
  TilePlan plan;
  plan.columns = roles.columns->id;
  plan.column_count = roles.columns->extent;
  plan.width = shape.columns;
  while (plan.column_count.is_constant() && plan.width > 4 &&
         plan.width > plan.column_count.constant())
    plan.width /= 2;
  if (roles.rows != nullptr) {
    plan.rows = roles.rows->id;
    plan.row_count = roles.rows->extent;
    plan.has_row_limit = roles.rows->limit.is_defined();
    plan.rows_at_once = std::min(shape.rows, rows_in_cache(c.a, roles.rows->id, target));
  }
  for (const Statement* loop : c.parallel) {
    if (loop == roles.columns || loop == roles.rows) continue;
    plan.others.push_back(loop->id);
    plan.other_extents.push_back(loop->extent);
  }
  for (const Statement* loop : reduction) plan.reduction.push_back(loop->id);
  plan.reduction_length = 1;
  for (const Statement* loop : reduction)
    plan.reduction_length *=
        loop->extent.is_constant() && !loop->limit.is_defined() ? loop->extent.constant() : 0;
  std::vector<const Statement*> outside;
  for (const Statement& loop : around_it) outside.push_back(&loop);
  using Loops = const std::vector<const Statement*>;
  for (Loops* loops : {static_cast<Loops*>(&outside), &c.parallel, &reduction}) {
    for (const Statement* loop : *loops) {
      if (loop != roles.columns && depends_on(c.b, loop->id))
        plan.packed.push_back({loop->id, loop->extent});
    }
  }
  if (const Statement* halved = loop_to_halve(c, roles.columns, roles.rows)) {
    plan.halved = halved->id;
    plan.halved_extent = halved->extent;
  }
  plan.a = c.a->id;
  plan.b = c.b->id;
  plan.b_view = c.b->view;
  plan.ahead = fetched_ahead(c, reduction, roles.rows, target);
  plan.rows_ahead = rows_ahead(roles, plan.rows_at_once, target);
  plan.result_bytes = is_short(c) ? result_bytes(c) : 0;
  if (shape.depth > 0 && depth_refusal(roles, may_pack, shape, is_alone).empty()) {
    const Depth depth = depth_of(reduction, shape.depth);
    plan.depth = depth.positions;
    plan.depth_level = depth.level;
    plan.depth_length = depth.positions * depth.inner;
    plan.row_bytes = bytes_of_row(c);
    if (has_few_rows(roles, shape)) {
      const Statement* lines = lines_around(roles);
      plan.lines = lines->id;
      plan.line_count = lines->extent.constant();
      if (const Statement* images = lines_around(roles, lines)) {
        plan.images = images->id;
        plan.image_count = images->extent.constant();
      }
    }
  }
  if (shape.is_paired && c.a->bounds == Bounds::Inside &&
      pair_refusal(roles, may_pack, shape, target).empty()) {
    plan.is_paired = true;
    plan.depth = 0;
    plan.pair_extent = reduction.back()->extent;
    plan.rows_at_once = fits_amx_tiles(roles, target) ? 2 * kOwnTileRows : shape.rows;
    plan.is_shared_by_rows =
        fits_amx_tiles(roles, target) && plan.others.empty() && reduction.size() == 1;
    plan.row_bytes = bytes_of_row(c);
  }
  if (is_alone && plan.depth == 0 && !plan.is_paired && may_pack[plan.a] &&
      should_pack_rows(roles, plan.rows_at_once, plan.width, target)) {
    for (Loops* loops : {&c.parallel, &reduction}) {
      for (const Statement* loop : *loops) {
        if (loop != roles.rows && depends_on(c.a, loop->id))
          plan.packed_rows.push_back({loop->id, loop->extent});
      }
    }
  }
  return plan;
}

}  // namespace tenon::codegen::cpu
