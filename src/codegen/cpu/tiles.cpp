#include "codegen/cpu/tiles.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "codegen/cpu/collapsed_loops.h"
#include "codegen/cpu/reduction_vectors.h"
#include "codegen/cpu/row_blocks.h"
#include "codegen/cpu/schedule.h"
#include "nests/scalar_walk.h"
#include "nests/stride.h"
#include "ops/access.h"

namespace tenon::codegen::cpu {
namespace {

using nests::Stride;

bool is_affine(const Scalar& scalar) {
  return !nests::any_node(scalar, [](const ScalarNode& node) {
    if (node.kind == ScalarKind::Integer || node.kind == ScalarKind::Loop) return false;
    return node.kind != ScalarKind::Binary ||
           (node.binary != BinaryOp::Add && node.binary != BinaryOp::Subtract && node.binary != BinaryOp::Multiply);
  });
}

// How far apart the elements of neighbouring positions lie; nothing where that is not the same everywhere
// or only the run knows.
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

// How many rows lie in the first cache side by side: at distances that are powers of two they take the same
// few places of it. One way is left to what else is read.
unsigned rows_in_cache(const Scalar& load, std::size_t loop, const TargetFacts& target) {
  const MemoryLevel& cache = target.nearest();
  const std::int64_t line = target.line_bytes / 4, ways = cache.ways - 1;
  const auto places = static_cast<std::int64_t>(cache.bytes / cache.ways / target.line_bytes);
  const auto distance = distance_along(load, loop);
  if (!distance || *distance == 0 || *distance % line != 0) return static_cast<unsigned>(places);
  return static_cast<unsigned>(ways * places / std::gcd(*distance / line, places));
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
  for (const Statement* loop : sum.reduction) length *= usual_value(loop->extent);
  return length <= kShort;
}

std::int64_t result_bytes(const Contraction& sum) {
  std::int64_t bytes = 4;
  for (const Statement* loop : sum.parallel) bytes *= static_cast<std::int64_t>(usual_value(loop->extent));
  return bytes;
}

// What lies along the columns comes from memory a line or two of each row, which no processor foresees; where
// few tiles use it, each waits for it.
void fetch_ahead(LoopNest& nest, const Contraction& c, const Statement* rows, const TargetFacts& target) {
  constexpr std::int64_t kFewRows = 32, kTurns = 12;
  const double row_count = rows == nullptr ? 1 : usual_value(rows->extent);
  const auto distance = distance_along(c.b, c.reduction.back()->id);
  if (row_count > kFewRows || !distance || *distance < 4 * static_cast<std::int64_t>(target.line_bytes)) return;
  nest.buffers[c.b->id].ahead = kTurns * *distance;
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
  Contraction c = roles.sum;
  const Statement *columns = roles.columns, *rows = roles.rows;

  c.reduction = closest_last(c.reduction, c.a);
  const Dim count = columns->extent;
  unsigned width = shape.columns;
  while (count.is_constant() && width > 4 && width > count.constant()) width /= 2;
  const std::size_t column_id = columns->id;
  const std::size_t outer = nest.new_loop(concat(nest.loop_names[column_id], "o"));
  const std::size_t inner = nest.new_loop(concat(nest.loop_names[column_id], "i"));
  const Dim blocks = ceil_div(count, width);
  nest.extent(blocks);
  const Scalar start = times(loop_scalar(outer), integer_scalar(width));
  const Scalar position = plus(start, loop_scalar(inner));

  // b laid out as it is read: each step of the innermost sum finds the next vector behind the last.
  std::vector<Packing> packings;
  Scalar packed;
  if (may_pack[c.b->id] && can_be_laid_anew(c.b) && count.is_constant()) {
    Packing packing;
    packing.buffer = c.b->id;
    packing.source_dims = c.b->view;
    packing.loops = {outer};
    packing.extents = {blocks.constant()};
    bool is_fixed = true;
    std::vector<const Statement*> outside;
    for (const Statement& loop : around_it) outside.push_back(&loop);
    for (const auto* loops : {&outside, &c.parallel, &c.reduction}) {
      for (const Statement* loop : *loops) {
        if (loop == columns || !depends_on(c.b, loop->id)) continue;
        is_fixed &= loop->extent.is_constant();
        packing.loops.push_back(loop->id);
        if (is_fixed) packing.extents.push_back(loop->extent.constant());
      }
    }
    packing.loops.push_back(inner);
    packing.extents.push_back(width);
    packing.limit = count.constant();
    const std::vector<Scalar> coordinates(c.b->args.begin(),
                                          c.b->args.begin() + static_cast<std::ptrdiff_t>(c.b->view.size()));
    for (const Scalar& coordinate : coordinates) {
      for (const auto* loops : {&outside, &c.parallel, &c.reduction}) {
        for (const Statement* loop : *loops) is_fixed &= growth(coordinate, loop->id).has_value();
      }
      is_fixed &= is_affine(coordinate);
    }
    if (is_fixed) {
      Statement holder;
      holder.indices = coordinates;
      Block block{std::move(holder)};
      substitute_loop(block, column_id, position);
      packing.coordinates = block.front().indices;
      ScalarNode node = c.b.node();
      node.bounds = Bounds::Inside;
      node.view = Dims(packing.extents.begin(), packing.extents.end());
      node.args.clear();
      for (std::size_t loop : packing.loops) node.args.push_back(loop_scalar(loop));
      packed = Scalar(std::make_shared<const ScalarNode>(std::move(node)));
      nest.buffers[packing.buffer].dims = packed->view;
      packings.push_back(std::move(packing));
    }
  }

  // Rebuilt from the inside: what stood innermost, rows, columns, then all other loops to share out.
  Block body = *c.inner;
  const Statement* innermost = &body[1];
  while (innermost->kind == Statement::Kind::Loop) innermost = &innermost->body.front();
  Statement sum = *innermost;
  if (packed.is_defined()) sum.value = binary_scalar(BinaryOp::Multiply, sum.value->dtype, c.a, packed);
  for (std::size_t k = c.reduction.size(); k-- > 0;) {
    Statement loop = *c.reduction[k];
    loop.body = {std::move(sum)};
    sum = std::move(loop);
  }
  body[1] = std::move(sum);
  substitute_loop(body, column_id, position);
  // Where all columns of b stay in a core's cache, threads share out what is around the rows: each
  // reads of a what it wrote itself, in neighbouring places. Else each reads its own part of b; where
  // all cores together hold b, there are halves of the rows for that.
  const auto close_bytes = static_cast<std::int64_t>(target.own_cache().bytes / 2);
  const auto shared_bytes = static_cast<std::int64_t>(target.shared_cache().bytes / 8 * 3);
  std::int64_t b_bytes = 4;
  for (const Dim& dim : packed.is_defined() ? packed->view : c.b->view) {
    b_bytes = std::min(shared_bytes + 1, dim.is_constant() ? b_bytes * dim.constant() : shared_bytes + 1);
  }
  const bool is_alone = outermost == LoopKind::Parallel;
  if (!packed.is_defined() && b_bytes > close_bytes) fetch_ahead(nest, c, rows, target);
  const bool keeps_rows = is_alone && (b_bytes <= close_bytes) != shape.is_reordered;
  const bool may_halve = is_alone && !keeps_rows && !shape.is_reordered && b_bytes <= shared_bytes;
  const Statement* halved = may_halve ? loop_to_halve(c, columns, rows) : nullptr;
  const std::size_t half = halved == nullptr ? 0 : nest.new_loop(concat(nest.loop_names[halved->id], "o"));
  const std::size_t rest = halved == nullptr ? 0 : nest.new_loop(concat(nest.loop_names[halved->id], "i"));
  const auto turned = [&](const Statement& loop) {
    Statement copy = loop;
    copy.body.clear();
    if (&loop != halved) return copy;
    copy.id = rest;
    copy.extent = loop.extent.constant() / 2;
    return copy;
  };
  if (halved != nullptr) {
    const Scalar first = times(loop_scalar(half), integer_scalar(halved->extent.constant() / 2));
    substitute_loop(body, halved->id, plus(first, loop_scalar(rest)));
  }
  std::vector<Statement> around;
  Statement block_loop;
  block_loop.id = outer;
  block_loop.extent = blocks;
  block_loop.is_independent = true;
  block_loop.loop = outermost;
  for (const Statement* loop : c.parallel) {
    if (loop == columns || loop == rows) continue;
    around.push_back(turned(*loop));
    around.back().loop = outermost;
  }
  around.insert(keeps_rows ? around.end() : around.begin(), std::move(block_loop));
  if (rows != nullptr) {
    Statement jam = turned(*rows);
    jam.loop = LoopKind::Jam;
    jam.width = std::min(shape.rows, rows_in_cache(c.a, rows->id, target));
    jam.body = std::move(body);
    if (is_alone && halved == nullptr) {
      if (is_short(c)) {
        if (auto row_blocks = rows_outermost(nest, jam, result_bytes(c), shared_bytes)) around.insert(around.begin(), std::move(*row_blocks));
      }
      if (std::optional<Statement> row_blocks = split_rows(nest, jam, around)) around.push_back(std::move(*row_blocks));
    }
    body = {std::move(jam)};
  }
  Statement vector;
  vector.id = inner;
  vector.extent = width;
  vector.loop = LoopKind::Vector;
  vector.width = width;
  vector.is_independent = true;
  if (!(mod(count, width) == Dim(0))) {
    vector.limit = binary_scalar(BinaryOp::Minimum, DType::I64, integer_scalar(width),
                                 binary_scalar(BinaryOp::Subtract, DType::I64, nest.extent(count), start));
  }
  vector.body = std::move(body);
  body = {std::move(vector)};
  if (halved != nullptr) {
    Statement halves;
    halves.id = half;
    halves.extent = 2;
    halves.is_independent = true;
    halves.loop = LoopKind::Parallel;
    around.insert(around.begin(), std::move(halves));
  }
  for (std::size_t k = around.size(); k-- > 0;) {
    around[k].body = std::move(body);
    body = {std::move(around[k])};
  }
  whole = std::move(body);
  return packings;
}

// What is known of the loops that become tiles; those around stages are never reordered.
TileFacts facts_of(const Roles& roles, bool is_stage, const TargetFacts& target) {
  TileFacts facts;
  facts.refusal = roles.refusal;
  if (!facts.refusal.empty()) return facts;
  facts.row_count = roles.rows == nullptr ? std::optional<std::int64_t>(1) : roles.rows->extent.value();
  facts.column_count = static_cast<std::int64_t>(usual_value(roles.columns->extent));
  if (roles.rows != nullptr) facts.most_rows = rows_in_cache(roles.sum.a, roles.rows->id, target);
  facts.has_other_loops = !is_stage && roles.sum.parallel.size() > (roles.rows == nullptr ? 1U : 2U);
  return facts;
}

// The stages of a nest whose outer loops hold several, each an independent loop of its own.
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

}  // namespace

TileFacts tile_facts(LoopNest nest, const std::vector<bool>& may_pack, const TargetFacts& target) {
  collapse_rows(nest);
  Roles roles = find_roles(nest.body, may_pack);
  std::string dots = find_reduction_roles(nest.body, may_pack).refusal;
  const Block* stages = stages_of(nest);
  for (std::size_t k = 0; stages != nullptr && k < stages->size() && !roles.refusal.empty(); ++k) {
    const Block stage{(*stages)[k]};
    Roles found = find_roles(stage, may_pack);
    // Of several sums the first stands for all.
    if (found.refusal.empty()) return facts_of(found, true, target);
    if (!dots.empty()) dots = find_reduction_roles(stage, may_pack).refusal;
  }
  TileFacts facts = facts_of(roles, false, target);
  if (!facts.refusal.empty()) facts.reduction_refusal = dots;
  return facts;
}

std::optional<std::vector<Packing>> tile_contraction(LoopNest& nest, const std::vector<bool>& may_pack,
                                                     const TileShape& shape, const TargetFacts& target) {
  Block* stages = stages_of(nest);
  if (stages == nullptr) {
    collapse_rows(nest);
    return tile(nest, nest.body, {}, may_pack, shape, LoopKind::Parallel, target);
  }
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
    if (const auto made = tile(nest, stage, around, may_pack, shape, LoopKind::Serial, target)) {
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

}  // namespace tenon::codegen::cpu
