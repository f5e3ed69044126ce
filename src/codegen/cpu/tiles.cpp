#include "codegen/cpu/tiles.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "codegen/cpu/collapsed_loops.h"
#include "codegen/cpu/reduction_vectors.h"
#include "codegen/cpu/row_blocks.h"
#include "codegen/cpu/schedule.h"
#include "nests/pairs.h"
#include "nests/schedule/bind.h"
#include "nests/schedule/loops.h"
#include "nests/schedule/pack.h"
#include "nests/schedule/reorder.h"
#include "nests/schedule/split.h"
#include "nests/schedule/stage_sum.h"
#include "nests/stride.h"
#include "ops/access.h"
#include "target/bf16.h"

namespace tenon::codegen::cpu {

std::optional<std::int64_t> distance_along(const Scalar& load, std::size_t loop) {
  std::int64_t distance = 0;
  std::optional<std::int64_t> stride = 1;
  for (std::size_t axis = load->view.size(); axis-- > 0;) {
    const auto step = growth(load->args[axis], loop);
    if (!step || (*step != 0 && !stride)) return std::nullopt;
    if (*step != 0) distance += *step * *stride;
    const std::optional<std::int64_t> extent = load->view[axis].value();
    stride = stride && extent ? std::optional(*stride * *extent) : std::nullopt;
  }
  return distance;
}

namespace {

using nests::PackedLoop;
using nests::SplitLoop;
using nests::Stride;

unsigned rows_in_cache(const Scalar& load, std::size_t loop, const TargetFacts& target) {
  return cpu::rows_in_cache(distance_along(load, loop).value_or(0), target);
}

// The loops of the sum, those along which elements lie closest innermost. Distances that only the run
// knows are those of whole rows and images.
std::vector<const Statement*> closest_last(std::vector<const Statement*> loops, const Scalar& load) {
  const auto distance = [&](const Statement* loop) {
    return std::abs(distance_along(load, loop->id).value_or(std::numeric_limits<std::int64_t>::max()));
  };
  std::stable_sort(loops.begin(), loops.end(),
                   [&](const Statement* x, const Statement* y) { return distance(x) > distance(y); });
  return loops;
}

// The loop whose halves two threads would do: the outermost along which b stays, where there are
// enough rows for b to be read once for each half.
const Statement* loop_to_halve(const Contraction& c, const Statement* columns, const Statement* rows) {
  constexpr std::int64_t kEnoughRows = 96;
  const Statement* outermost = nullptr;
  std::int64_t count = 1;
  for (const Statement* loop : c.parallel) {
    if (loop == columns || stride_along(c.b, loop->id) != Stride::Zero) continue;
    if (!loop->extent.is_constant()) return nullptr;
    count *= loop->extent.constant();
    const bool is_even = loop->extent.constant() % 2 == 0 && loop->extent.constant() > 0;
    if (outermost == nullptr && is_even && (loop != rows || loop->extent.constant() >= 64)) outermost = loop;
  }
  return count >= kEnoughRows ? outermost : nullptr;
}

// Which loops of a sum of products become rows and columns of tiles.
struct Roles {
  Contraction sum;  // b runs along the columns
  const Statement* columns = nullptr;
  const Statement* rows = nullptr;  // none where nothing is shared
  std::string refusal;
};
Roles find_roles(const Block& body, const std::vector<bool>& may_pack) {
  Roles roles;
  std::optional<Contraction> found = find_contraction(body);
  if (!found) {
    roles.refusal = "it does not sum products of two f32, f16 or bf16 operands";
    return roles;
  }
  Contraction& c = roles.sum = std::move(*found);
  // Columns: b and the result run along them, a stays (or runs along too, as for depthwise).
  int best = 0;
  bool is_swapped = false;
  roles.refusal = "it writes along no loop of 4 or more";
  for (const Statement* loop : c.parallel) {
    const bool is_number = loop->extent.is_constant();
    if ((is_number && loop->extent.constant() < 4) || loop->limit.is_defined()) continue;
    if (!suits_columns(c, loop->id)) continue;
    for (const bool swaps : {false, true}) {
      const Scalar& a = swaps ? c.b : c.a;
      const Scalar& b = swaps ? c.a : c.b;
      const Stride of_a = stride_along(a, loop->id), of_b = stride_along(b, loop->id);
      const bool packs = may_pack[b->id] && can_be_laid_anew(b);
      if (of_b == Stride::Zero || (of_b == Stride::Other && !packs) || of_a == Stride::Other) {
        if (best == 0) {
          roles.refusal = "no operand lies along what it writes, nor is one constant and can be laid so";
        }
        continue;
      }
      const int score = (of_a == Stride::Zero ? 8 : 2) + (packs ? 2 : 0) + (is_number ? 1 : 0);
      if (score > best) {
        best = score;
        roles.columns = loop;
        is_swapped = swaps;
      }
    }
  }
  if (roles.columns == nullptr) return roles;
  roles.refusal.clear();
  if (is_swapped) std::swap(c.a, c.b);
  // Rows: those along which b stays; the innermost, whose elements of a lie closest.
  for (const Statement* loop : c.parallel) {
    if (loop != roles.columns && stride_along(c.b, loop->id) == Stride::Zero) roles.rows = loop;
  }
  return roles;
}

}  // namespace

// With 32 registers 14 rows would fit as well; they gain nothing, and more streams of rows than a
// processor looks ahead on cost a little.
TileShape tile_for(unsigned register_count, unsigned register_bits) {
  return {register_count >= 32 ? 8U : 6U, register_bits / 32 * 2};
}

namespace {

// Few products for each result, which is then what takes the time.
bool is_short(const Contraction& sum) {
  constexpr double kShort = 128;
  double length = 1;
  for (const Statement* loop : sum.reduction) length *= size_hint(loop->extent);
  return length <= kShort;
}

std::int64_t result_bytes(const Contraction& sum) {
  std::int64_t bytes = 4;
  for (const Statement* loop : sum.parallel) bytes *= static_cast<std::int64_t>(size_hint(loop->extent));
  return bytes;
}

// What lies along the columns comes from memory a line or two of each row, which no processor foresees; where
// few tiles use it, each waits for it. So many elements are fetched ahead; 0: none.
std::int64_t fetched_ahead(const Contraction& c, const std::vector<const Statement*>& reduction, const Statement* rows,
                           const TargetFacts& target) {
  constexpr std::int64_t kFewRows = 32, kTurns = 12;
  const double row_count = rows == nullptr ? 1 : size_hint(rows->extent);
  const auto distance = distance_along(c.b, reduction.back()->id);
  if (row_count > kFewRows || !distance || *distance < 4 * static_cast<std::int64_t>(target.line_bytes)) return 0;
  return kTurns * *distance;
}

// What is decided of a tile before any loop is moved.
struct TilePlan {
  std::size_t columns = 0;
  Dim column_count;
  unsigned width = 0;
  std::optional<std::size_t> rows;
  Dim row_count;
  bool has_row_limit = false;
  unsigned rows_at_once = 1;
  std::vector<std::size_t> others;        // the loops around rows and columns, outermost first
  std::vector<Dim> other_extents;
  std::vector<std::size_t> reduction;     // outermost first
  std::vector<PackedLoop> packed;         // that b runs along, besides columns
  std::optional<std::size_t> halved;      // of rows and others
  Dim halved_extent;
  std::size_t b = 0;                      // the buffer along columns
  Dims b_view;
  std::int64_t sum_length = 0;            // 0 where it is no number
  std::int64_t depth = 0;                 // positions of a loop of the sum at a time; 0: all
  std::size_t depth_level = 0;            // of which loop
  std::int64_t depth_length = 0;          // of the sum, so many at a time
  std::optional<std::size_t> lines;       // the loop around the rows, where parts of the sum run around both
  std::int64_t line_count = 0;
  std::optional<std::size_t> images;      // the loop around the lines, where it counts images
  std::int64_t image_count = 0;
  bool is_paired = false;                 // along the innermost loop of the sum
  bool is_shared_by_rows = false;         // a product in tiles of the processor's own: nothing but rows and columns
  Dim pair_extent;
  double row_bytes = 0;                   // that one row reads
  std::int64_t ahead = 0;                 // elements of b, where it is large and not laid out anew
  std::int64_t result_bytes = 0;          // of a short sum; else 0
  std::size_t a = 0;                      // the buffer along rows
  std::vector<PackedLoop> packed_rows;    // that a runs along, besides rows, where it is laid out anew; else none
};

// How many positions of a loop of a sum run at a time, so that none is left over. Those around it run one by one.
struct Depth {
  std::size_t level = 0;  // which loop, outermost first
  std::int64_t positions = 0, inner = 1, all = 1;
  std::string refusal;
};
Depth depth_of(const std::vector<const Statement*>& reduction, std::int64_t most) {
  Depth depth;
  depth.refusal = "the length of its sum is no number";
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
  depth.refusal = is_short ? concat("its sum of ", depth.all, " has no parts of ", most / 4, " to ", most) : "";
  return depth;
}

// Why products cannot be added up in pairs; empty where they can.
std::string pair_refusal(const Roles& roles, const std::vector<bool>& may_pack, const TileShape& shape, const TargetFacts& target) {
  if (bf16_instructions(target).empty()) return "the processor has no instructions for it";
  const Contraction& c = roles.sum;
  const Statement* loop = may_pack[c.b->id] ? pair_loop(c, c.a, c.b) : nullptr;
  if (loop == nullptr) return "it does not sum products of bf16 operands of which one is constant, evenly many side by side";
  if (closest_last(c.reduction, c.a).back() != loop) return "its innermost loop is another";
  if (roles.rows == nullptr) return "no rows share what is constant";
  const Dim& columns = roles.columns->extent;
  if (!columns.is_constant() || columns.constant() % shape.columns != 0) return concat("its columns are no multiple of ", shape.columns);
  return "";
}

// Tiles of the processor's own have rows of 32 elements of the sum; two of them stand for rows and for columns.
bool fits_own_tiles(const Roles& roles, const TargetFacts& target) {
  constexpr std::int64_t kFewestRows = 4, kTileSum = 32;
  const Dim &rows = roles.rows->extent, &sum = closest_last(roles.sum.reduction, roles.sum.a).back()->extent;
  return bf16_instructions(target) == "amx-bf16" && rows.is_constant() && rows.constant() >= kFewestRows && !roles.rows->limit.is_defined() &&
         sum.constant() % kTileSum == 0;
}

// The loop around the rows, where it counts lines of them: all lines read the same columns. So do images, around the
// lines.
const Statement* lines_around(const Roles& roles, const Statement* inner = nullptr) {
  const Statement* lines = nullptr;
  for (const Statement* loop : roles.sum.parallel) {
    const bool is_taken = loop == roles.columns || loop == roles.rows || loop == inner;
    const bool is_shared = !is_taken && stride_along(roles.sum.b, loop->id) == Stride::Zero;
    if (is_shared && loop->extent.is_constant() && !loop->limit.is_defined()) lines = loop;
  }
  return lines;
}

// Why the sum cannot run in parts; empty where it can. `may_take_lines`: rows of several lines count together.
constexpr std::int64_t kFewestTiles = 4;
bool has_few_rows(const Roles& roles, const TileShape& shape) { return roles.rows->extent.constant() < kFewestTiles * shape.rows; }
std::string depth_refusal(const Roles& roles, const std::vector<bool>& may_pack, const TileShape& shape, bool may_take_lines) {
  const std::string few = "it has few rows, or their number is only known when it runs";
  if (roles.rows == nullptr || !roles.rows->extent.is_constant() || roles.rows->limit.is_defined()) return few;
  if (has_few_rows(roles, shape)) {
    const Statement* lines = may_take_lines ? lines_around(roles) : nullptr;
    if (lines == nullptr || lines->extent.constant() * roles.rows->extent.constant() < kFewestTiles * shape.rows) return few;
  }
  const bool packs = may_pack[roles.sum.b->id] && can_be_laid_anew(roles.sum.b) && roles.columns->extent.is_constant();
  if (!packs) return "what is read along columns is not constant";
  return depth_of(closest_last(roles.sum.reduction, roles.sum.a), shape.depth).refusal;
}

// Whether a tile of rows had better find its operand step by step of the sum: where each step lies in a page of its own,
// the lines of all steps take too few places of a core's cache to be there for the next tile, and are read from the
// cache of all again for every block of columns. That has to cost more than the copy.
bool should_pack_rows(const Roles& roles, unsigned rows_at_once, unsigned width, const TargetFacts& target) {
  constexpr std::int64_t kPageElements = 1024;
  constexpr double kPays = 2;
  const Contraction& c = roles.sum;
  if (roles.rows == nullptr || c.a->bounds != Bounds::Inside || c.a->dtype != DType::F32) return false;
  const Dim& rows = roles.rows->extent;
  if (roles.rows->limit.is_defined() || !rows.is_constant() || rows.constant() % rows_at_once != 0) return false;
  if (stride_along(c.a, roles.rows->id) != Stride::Unit) return false;
  double steps = 1, tiles = 1.0 / (rows_at_once * width);
  for (const auto* loops : {&c.parallel, &c.reduction}) {
    for (const Statement* loop : *loops) {
      if (!loop->extent.is_constant() || loop->limit.is_defined() || !distance_along(c.a, loop->id)) return false;
      (loops == &c.reduction ? steps : tiles) *= static_cast<double>(loop->extent.constant());
    }
  }
  const std::int64_t distance = std::abs(*distance_along(c.a, closest_last(c.reduction, c.a).back()->id));
  if (distance < kPageElements || steps <= static_cast<double>(lines_in_cache(distance, target.own_cache(), target.line_bytes))) return false;
  const double waits = tiles * steps * target.line_bytes / target.bytes_per_cycle(target.shared_cache());
  const double copy = 2 * 4 * size_hint(product(c.a->view)) / target.bytes_per_cycle(target.memory());
  return waits > kPays * copy;
}

// What one row reads, neighbours' shares of what several read left out.
double bytes_of_row(const Contraction& c) {
  double held = 1, rows = 1, read = 1;
  for (const Dim& dim : c.a->view) held *= size_hint(dim);
  for (const Statement* loop : c.parallel) rows *= stride_along(c.a, loop->id) == Stride::Zero ? 1 : size_hint(loop->extent);
  for (const Statement* loop : c.reduction) read *= size_hint(loop->extent);
  return static_cast<double>(info(c.a->dtype).storage_bytes) * std::min(held / rows, read);
}

TilePlan plan_of(const Roles& roles, const std::vector<Statement>& around_it, const std::vector<bool>& may_pack,
                 const TileShape& shape, bool is_alone, const TargetFacts& target) {
  const Contraction& c = roles.sum;
  const std::vector<const Statement*> reduction = closest_last(c.reduction, c.a);
  TilePlan plan;
  plan.columns = roles.columns->id;
  plan.column_count = roles.columns->extent;
  plan.width = shape.columns;
  while (plan.column_count.is_constant() && plan.width > 4 && plan.width > plan.column_count.constant()) plan.width /= 2;
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
  plan.sum_length = 1;
  for (const Statement* loop : reduction) plan.sum_length *= loop->extent.is_constant() && !loop->limit.is_defined() ? loop->extent.constant() : 0;
  std::vector<const Statement*> outside;
  for (const Statement& loop : around_it) outside.push_back(&loop);
  using Loops = const std::vector<const Statement*>;
  for (Loops* loops : {static_cast<Loops*>(&outside), &c.parallel, &reduction}) {
    for (const Statement* loop : *loops) {
      if (loop != roles.columns && depends_on(c.b, loop->id)) plan.packed.push_back({loop->id, loop->extent});
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
  if (shape.is_paired && c.a->bounds == Bounds::Inside && pair_refusal(roles, may_pack, shape, target).empty()) {
    plan.is_paired = true;
    plan.depth = 0;
    plan.pair_extent = reduction.back()->extent;
    plan.rows_at_once = fits_own_tiles(roles, target) ? 2 * kOwnTileRows : shape.rows;
    plan.is_shared_by_rows = fits_own_tiles(roles, target) && plan.others.empty() && reduction.size() == 1;
    plan.row_bytes = bytes_of_row(c);
  }
  if (is_alone && plan.depth == 0 && !plan.is_paired && may_pack[plan.a] && should_pack_rows(roles, plan.rows_at_once, plan.width, target)) {
    for (Loops* loops : {&c.parallel, &reduction}) {
      for (const Statement* loop : *loops) {
        if (loop != roles.rows && depends_on(c.a, loop->id)) plan.packed_rows.push_back({loop->id, loop->extent});
      }
    }
  }
  return plan;
}

// Has rows laid out tile by tile, each step of the sum behind the last: the loop over the tiles is then what there is of
// rows to share out. Gives the loop of one tile.
std::size_t pack_rows(LoopNest& nest, Block& whole, TilePlan& plan, std::vector<Packing>& packings) {
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

// Where all columns of b stay in a core's cache, threads share out what is around the rows: each reads of a what
// it wrote itself, in neighbouring places. Else each reads its own part of b; where all cores together hold b, there
// are halves of the rows for that.
struct Sharing {
  bool keeps_rows = false, halves = false;
  bool is_close = false;  // all of b stays in a core's cache
};
std::int64_t shared_cache_bytes(const TargetFacts& target) { return static_cast<std::int64_t>(target.shared_cache().bytes / 8 * 3); }
Sharing sharing_of(const Dims& b_view, const TileShape& shape, bool is_alone, const TargetFacts& target) {
  const auto close_bytes = static_cast<std::int64_t>(target.own_cache().bytes / 2);
  const std::int64_t shared_bytes = shared_cache_bytes(target);
  std::int64_t bytes = 4;
  for (const Dim& dim : b_view) {
    bytes = std::min(shared_bytes + 1, dim.is_constant() ? bytes * dim.constant() : shared_bytes + 1);
  }
  Sharing sharing;
  sharing.is_close = bytes <= close_bytes;
  sharing.keeps_rows = is_alone && sharing.is_close != shape.is_reordered;
  sharing.halves = is_alone && !sharing.keeps_rows && !shape.is_reordered && bytes <= shared_bytes;
  return sharing;
}

// Blocks of columns and of what stands around them, lines that count as rows left out.
std::int64_t items_of(const TilePlan& plan) {
  Dim items = ceil_div(plan.column_count, plan.width);
  for (std::size_t k = 0; k < plan.others.size(); ++k) {
    if (plan.others[k] != plan.lines) items = items * plan.other_extents[k];
  }
  return items.value().value_or(1);
}

RowBlocks row_blocks_of(const TilePlan& plan, const TargetFacts& target) {
  const std::int64_t count = plan.lines ? plan.line_count : plan.row_count.constant();
  const std::int64_t rows = plan.lines ? plan.row_count.constant() : 1;  // of each of these
  const std::int64_t tiles = plan.is_shared_by_rows ? 1 : kFewestTiles;
  const std::int64_t fewest = (tiles * static_cast<std::int64_t>(plan.rows_at_once) + rows - 1) / rows;
  return blocks_of_rows(count, fewest, plan.row_bytes * static_cast<double>(rows), items_of(plan), target);
}

// How many blocks of columns go through the parts of a sum together.
std::int64_t column_group(const TilePlan& plan, const TargetFacts& target) {
  if (plan.depth == 0 || plan.lines || !plan.column_count.is_constant() || plan.column_count.constant() % plan.width != 0) return 1;
  const std::int64_t column_blocks = plan.column_count.constant() / plan.width, rows = row_blocks_of(plan, target).rows;
  const std::int64_t around = items_of(plan) / column_blocks * (plan.row_count.constant() / rows);
  return columns_together(column_blocks, around, plan.row_bytes * static_cast<double>(rows), target);
}

// How far ahead columns that lie in panels are fetched where sums run in one piece: the panel behind where many rows use
// one; else, of weights that a core's cache does not hold, as much as memory takes to answer. 0: not at all.
std::int64_t panel_ahead(const TilePlan& plan, const Statement* rows, unsigned rows_at_once, const TargetFacts& target) {
  constexpr std::int64_t kStreamed = 1024;
  constexpr double kLarge = 2;  // what two cores hold, as the weights of a recurrence, had better not be asked for again
  const bool has_limit = rows != nullptr && rows->limit.is_defined();
  if (rows != nullptr && !has_limit && size_hint(rows->extent) >= kFewestTiles * rows_at_once) return plan.sum_length * plan.width;
  const bool is_one_tile = rows == nullptr || (!has_limit && rows->extent.is_constant() && rows->extent.constant() <= rows_at_once);
  const bool is_far = 4 * size_hint(product(plan.b_view)) > kLarge * static_cast<double>(target.own_cache().bytes);
  return is_one_tile && is_far ? kStreamed : 0;
}

// Turns the loops of `whole`, which stands in the loops `around_it` of `nest`; those outside of a tile are
// run as `outermost`.
std::optional<std::vector<Packing>> tile(LoopNest& nest, Block& whole, const std::vector<Statement>& around_it,
                                         const std::vector<bool>& may_pack, const TileShape& shape,
                                         LoopKind outermost, const TargetFacts& target) {
  const Roles roles = find_roles(whole, may_pack);
  if (!roles.refusal.empty()) {
    if (!find_reduction_roles(whole, may_pack).refusal.empty()) return std::nullopt;
    return vectorise_reduction(nest, whole, around_it, may_pack, shape, outermost);
  }
  const bool is_alone = outermost == LoopKind::Parallel;
  TilePlan plan = plan_of(roles, around_it, may_pack, shape, is_alone, target);
  SplitLoop columns = split(nest, whole, plan.columns, plan.width);

  const std::int64_t group = is_alone ? column_group(plan, target) : 1;
  std::optional<std::size_t> grouped;  // the loop over the blocks of columns of a group
  if (group > 1) {
    const std::size_t sum = plan.reduction[plan.depth_level];
    const SplitLoop groups = split(nest, whole, columns.outer, group, "g"), parts = split(nest, whole, sum, plan.depth);
    columns.outer = groups.outer;
    grouped = groups.inner;
    plan.reduction[plan.depth_level] = parts.outer;
    plan.reduction.insert(plan.reduction.begin() + static_cast<std::ptrdiff_t>(plan.depth_level) + 1, parts.inner);
    const auto at = std::ranges::find(plan.packed, sum, &PackedLoop::id);
    const Dim count = floor_div(at->extent, plan.depth);
    *at = {parts.inner, plan.depth};
    plan.packed.insert(plan.packed.insert(at, {groups.inner, group}), {parts.outer, count});
  }

  SplitLoop pairs;
  if (plan.is_paired) {
    pairs = split(nest, whole, plan.reduction.back(), 2);
    for (PackedLoop& loop : plan.packed) {
      if (loop.id == plan.reduction.back()) loop = {pairs.outer, plan.pair_extent.constant() / 2};
    }
    plan.reduction.back() = pairs.outer;
  }

  // b laid out as it is read: each step of the innermost sum finds the next vector behind the last.
  std::vector<Packing> packings;
  if (may_pack[plan.b] && plan.column_count.is_constant()) {
    plan.packed.insert(plan.packed.begin(), {columns.outer, ceil_div(plan.column_count, plan.width * group)});
    plan.packed.push_back({columns.inner, plan.width});
    if (plan.is_paired) plan.packed.push_back({pairs.inner, 2});
    // Where columns come out even nothing is left over.
    const std::int64_t limit = plan.is_paired ? 2 * plan.packed.front().extent.constant() : plan.column_count.constant() / group;
    if (auto packing = pack(nest, whole, plan.b, plan.packed, limit)) {
      plan.b_view = nest.buffers[plan.b].dims;
      packings.push_back(std::move(*packing));
    }
  }

  const bool has_parts = plan.depth > 0 && !packings.empty();
  const bool has_blocks = has_parts || (plan.is_shared_by_rows && !packings.empty());  // of rows, by what caches hold
  const Sharing sharing = sharing_of(plan.b_view, shape, is_alone && !has_blocks, target);
  if (packings.empty() && !sharing.is_close && plan.ahead > 0) nest.buffers[plan.b].ahead = plan.ahead;
  const unsigned tile_rows = plan.rows_at_once;
  std::optional<std::size_t> tile_loop;  // of rows, where the loop over tiles is another
  if (!plan.packed_rows.empty()) tile_loop = pack_rows(nest, whole, plan, packings);
  std::vector<std::size_t> around = plan.others;
  std::vector<Dim> items = plan.other_extents;
  if (has_parts && plan.lines) {
    const auto lines = std::find(around.begin(), around.end(), *plan.lines);
    items.erase(items.begin() + (lines - around.begin()));
    around.erase(lines);
  }
  around.insert(sharing.keeps_rows ? around.end() : around.begin(), columns.outer);
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
      const double weights = 4 * size_hint(product(plan.b_view)), image = plan.row_bytes * size_hint(plan.row_count * count);
      const auto column_blocks = static_cast<std::int64_t>(size_hint(ceil_div(plan.column_count, plan.width)));
      if (const std::int64_t together = images_together(plan.image_count, image, weights, column_blocks, target)) {
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
  } else if (sharing.halves && plan.halved) {
    const SplitLoop halves = split(nest, whole, *plan.halved, plan.halved_extent.constant() / 2);
    if (plan.rows == plan.halved) plan.rows = halves.inner;
    std::replace(around.begin(), around.end(), *plan.halved, halves.inner);
    around.insert(around.begin(), halves.outer);
  } else if (is_alone && plan.rows && !plan.has_row_limit) {
    if (const auto block = rows_outermost(plan.row_count, plan.rows_at_once, plan.result_bytes, shared_cache_bytes(target))) {
      const SplitLoop blocks = split(nest, whole, *plan.rows, *block, "b");
      plan.has_row_limit = !(mod(plan.row_count, *block) == Dim(0));
      items.push_back(ceil_div(plan.row_count, *block));
      plan.row_count = *block;
      plan.rows = blocks.inner;
      around.insert(around.begin(), blocks.outer);
    }
    const auto block = plan.has_row_limit ? std::nullopt : rows_in_block(plan.row_count, plan.rows_at_once, items);
    if (block) {
      const SplitLoop blocks = split(nest, whole, *plan.rows, *block, "b");
      plan.rows = blocks.inner;
      around.push_back(blocks.outer);
    }
  }
  std::vector<std::size_t> order = around;
  order.push_back(columns.inner);
  std::vector<std::size_t> inside;  // of the parts of a sum
  if (grouped) order.push_back(*grouped);
  if (grouped) inside.push_back(*grouped);
  if (has_parts && plan.lines) inside.push_back(*plan.lines);
  if (has_parts) inside.push_back(*plan.rows);
  if (has_parts && plan.lines) order.push_back(*plan.lines);
  if (plan.rows) order.push_back(*plan.rows);
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
  if (has_parts) {
    if (!grouped) split(nest, whole, plan.reduction[plan.depth_level], plan.depth);
    stage_sum(nest, whole, inside, columns.inner, plan.depth_level + 1);
    // While one panel is in use for all rows the next comes closer.
    nest.buffers[plan.b].ahead = plan.depth_length * plan.width;
  } else if (plan.is_shared_by_rows && !packings.empty()) {
    nest.buffers[plan.b].ahead = plan.sum_length * plan.width;
  } else if (!packings.empty() && !plan.is_paired && !tile_loop && gains_by_depth(shape, target)) {
    nest.buffers[plan.b].ahead = panel_ahead(plan, plan.rows ? nests::find_loop(whole, *plan.rows) : nullptr, tile_rows, target);
  }
  return packings;
}

// What is known of the loops that become tiles; those around stages are never reordered.
TileFacts facts_of(const Roles& roles, bool is_stage, const TargetFacts& target) {
  TileFacts facts;
  facts.refusal = roles.refusal;
  if (!facts.refusal.empty()) return facts;
  facts.row_count = roles.rows == nullptr ? std::optional<std::int64_t>(1) : roles.rows->extent.value();
  facts.column_count = static_cast<std::int64_t>(size_hint(roles.columns->extent));
  if (roles.rows != nullptr) facts.most_rows = rows_in_cache(roles.sum.a, roles.rows->id, target);
  facts.has_other_loops = !is_stage && roles.sum.parallel.size() > (roles.rows == nullptr ? 1U : 2U);
  return facts;
}

}  // namespace

Block* stages_of(LoopNest& nest) {
  Block* block = &nest.body;
  while (block->size() == 1 && block->front().kind == Statement::Kind::Loop && block->front().is_independent) {
    block = &block->front().body;
  }
  const bool are_loops = std::all_of(block->begin(), block->end(), [](const Statement& statement) {
    return statement.kind == Statement::Kind::Loop && statement.is_independent;
  });
  return block->size() > 1 && are_loops ? block : nullptr;
}

unsigned depth_for(const TileShape& shape, const TargetFacts& target) {
  const double held = 0.875 * static_cast<double>(target.nearest().bytes);
  return static_cast<unsigned>(held / (4 * (shape.rows + shape.columns)));
}

bool gains_by_depth(const TileShape& shape, const TargetFacts& target) {
  // Measured on a Zen 4: tiles of 6x16 read a fifth of what the facts say, and gain by 4 %; of 8x32 a seventh, and gain nothing.
  constexpr double kMuch = 1.0 / 6;
  const double step_cycles = shape.rows * shape.columns / target.products_per_cycle();
  return 4.0 * shape.columns / step_cycles > kMuch * target.bytes_per_cycle(target.own_cache());
}

namespace {

// Where the sum can run in parts, of the nest itself or of its first stage that is a sum.
void note_depth(LoopNest nest, const std::vector<bool>& may_pack, const TargetFacts& target, TileFacts& facts) {
  TileShape shape = tile_for(target.registers, target.vector_bits);
  shape.depth = depth_for(shape, target);
  const Block* stages = stages_of(nest);
  if (stages == nullptr) collapse_rows(nest, true);
  for (std::size_t k = 0; k < (stages == nullptr ? 1 : stages->size()); ++k) {
    const Block stage = stages == nullptr ? nest.body : Block{(*stages)[k]};
    const Roles roles = find_roles(stage, may_pack);
    if (!roles.refusal.empty()) continue;
    facts.pair_refusal = pair_refusal(roles, may_pack, shape, target);
    facts.has_own_tiles = facts.pair_refusal.empty() && fits_own_tiles(roles, target);
    facts.depth_refusal = depth_refusal(roles, may_pack, shape, stages == nullptr);
    return;
  }
}

}  // namespace

TileFacts tile_facts(LoopNest nest, const std::vector<bool>& may_pack, const TargetFacts& target) {
  const LoopNest given = nest;
  collapse_rows(nest);
  Roles roles = find_roles(nest.body, may_pack);
  std::string dots = find_reduction_roles(nest.body, may_pack).refusal;
  const Block* stages = stages_of(nest);
  for (std::size_t k = 0; stages != nullptr && k < stages->size() && !roles.refusal.empty(); ++k) {
    const Block stage{(*stages)[k]};
    Roles found = find_roles(stage, may_pack);
    // Of several sums the first stands for all.
    if (found.refusal.empty()) {
      TileFacts facts = facts_of(found, true, target);
      note_depth(given, may_pack, target, facts);
      return facts;
    }
    if (!dots.empty()) dots = find_reduction_roles(stage, may_pack).refusal;
  }
  TileFacts facts = facts_of(roles, false, target);
  if (!facts.refusal.empty()) facts.reduction_refusal = dots;
  if (facts.refusal.empty()) note_depth(given, may_pack, target, facts);
  return facts;
}

std::optional<std::size_t> rows_to_pack(LoopNest nest, const std::vector<bool>& may_pack, const TileShape& shape, const TargetFacts& target) {
  if (stages_of(nest) != nullptr || shape.depth > 0 || shape.is_paired) return std::nullopt;
  collapse_rows(nest);
  const Roles roles = find_roles(nest.body, may_pack);
  if (!roles.refusal.empty() || roles.rows == nullptr) return std::nullopt;
  const unsigned rows = std::min(shape.rows, rows_in_cache(roles.sum.a, roles.rows->id, target));
  if (!should_pack_rows(roles, rows, shape.columns, target)) return std::nullopt;
  return roles.sum.a->id;
}

std::optional<std::vector<Packing>> turn_stages(LoopNest& nest, const StageTurn& turn) {
  Block* stages = stages_of(nest);
  if (stages == nullptr) return turn(nest.body, {}, LoopKind::Parallel);
  std::vector<Statement> around;
  for (const Block* block = &nest.body; block != stages; block = &block->front().body) {
    around.push_back(block->front());
    around.back().body.clear();
  }
  std::vector<Packing> packings;
  bool has_tiles = false;
  Block turned;
  for (const Statement& statement : *stages) {
    Block stage{statement};
    if (const auto made = turn(stage, around, LoopKind::Serial)) {
      packings.insert(packings.end(), made->begin(), made->end());
      has_tiles = true;
    } else {
      vectorise(nest, stage);
    }
    turned.insert(turned.end(), stage.begin(), stage.end());
  }
  if (!has_tiles) return std::nullopt;
  *stages = std::move(turned);
  for (Block* block = &nest.body; block->front().is_independent && block != stages; block = &block->front().body) {
    block->front().loop = LoopKind::Parallel;
  }
  return packings;
}

std::optional<std::vector<Packing>> tile_contraction(LoopNest& nest, const std::vector<bool>& may_pack,
                                                     const TileShape& shape, const TargetFacts& target) {
  if (stages_of(nest) == nullptr) collapse_rows(nest, shape.depth > 0);
  return turn_stages(nest, [&](Block& stage, const std::vector<Statement>& around, LoopKind outermost) {
    return tile(nest, stage, around, may_pack, shape, outermost, target);
  });
}

}  // namespace tenon::codegen::cpu
