// Register tiles for int8 contractions: VNNI dot products and AMX tiles.
#include "codegen/cpu/integer_tiles.h"

#include "base/error.h"
#include "base/text.h"
#include "codegen/cpu/row_blocks.h"
#include "nests/affine.h"
#include "nests/integer_contraction.h"
#include "nests/scalar_walk.h"
#include "nests/schedule/split.h"
#include "nests/stride.h"

#include <algorithm>
#include <limits>
#include <set>

namespace tenon::codegen::cpu {
namespace {

using nests::Stride;

constexpr std::int64_t kDot = 4;

// The loops that become rows, columns and dots of four.
struct IntegerRoles {
  Contraction sum;
  const Statement *columns = nullptr, *rows = nullptr, *dot = nullptr;
  std::string refusal;
};
using OuterLoops = std::vector<Statement>;  // The loops around a stage, without their bodies.

// Returns whether every coordinate of the load is affine in loops of constant extent.
bool is_even(const Scalar& load, const Contraction& sum, const OuterLoops& around) {
  for (const Statement& loop : around) {
    if (depends_on(load, loop.id) && !loop.extent.is_constant()) return false;
  }
  for (const auto* loops : {&sum.parallel, &sum.reduction}) {
    for (const Statement* loop : *loops) {
      if (depends_on(load, loop->id) && !loop->extent.is_constant()) return false;
    }
  }
  return std::ranges::all_of(
      load->args, [](const Scalar& index) { return nests::affine_of(index).has_value(); });
}

IntegerRoles find_integer_roles(const Block& body, const OuterLoops& around,
                                const std::vector<bool>& may_pack) {
  IntegerRoles roles;
  const auto no = [&](std::string reason) {
    roles.refusal = std::move(reason);
    return roles;
  };
  std::optional<Contraction> found = nests::find_integer_contraction(body);
  if (!found) return no("not an int8 contraction with i32 accumulation");
  Contraction& c = roles.sum = std::move(*found);
  if (may_pack[c.a->id] && !may_pack[c.b->id]) std::swap(c.a, c.b);
  if (!may_pack[c.b->id] || c.b->bounds != Bounds::Inside || !is_even(c.b, c, around)) {
    return no("no operand is a constant that can be packed for VNNI");
  }
  for (const Statement* loop : c.parallel) {
    const bool is_long = loop->extent.is_constant() && loop->extent.constant() >= 4;
    if (!is_long || loop->limit.is_defined() || !suits_columns(c, loop->id)) continue;
    if (depends_on(c.a, loop->id) || !depends_on(c.b, loop->id)) continue;
    roles.columns = loop;
  }
  if (roles.columns == nullptr) return no("no loop of 4 or more iterations is a column loop (N)");
  for (const Statement* loop : c.parallel) {
    if (loop != roles.columns && !depends_on(c.b, loop->id)) roles.rows = loop;
  }
  for (const Statement* loop : c.reduction) {
    if (stride_along(c.a, loop->id) == Stride::Unit && loop->extent.is_constant()) roles.dot = loop;
  }
  if (roles.dot == nullptr) return no("rows of A are not contiguous along K");
  // The last group of four would read beyond its group, and the last group beyond the buffer.
  const auto along = nests::affine_of(c.a->args[c.a->view.size() - 1]);
  const bool is_whole = along && along->steps.size() == 1 && along->steps.contains(roles.dot->id);
  if (roles.dot->extent.constant() % kDot != 0 && !is_whole)
    return no("groups are not multiples of four channels");
  return roles;
}

// Returns whether rows can be read in whole groups of four, as in a padded copy
// (`split_byte_padding`).
bool is_ready(const IntegerRoles& roles) {
  const Scalar& a = roles.sum.a;
  return a->bounds == Bounds::Inside &&
         (roles.dot->extent.constant() % kDot == 0 || mod(a->view.back(), kDot) == Dim(0));
}

std::int64_t width_for(std::int64_t count, std::int64_t width) {
  while (width > 4 && width > count) width /= 2;
  return width;
}

// Substitutes `value` for a loop in the load.
Scalar substituted(const Scalar& load, std::size_t loop, const Scalar& value) {
  Statement holder;
  holder.kind = Statement::Kind::Define;
  holder.value = load;
  Block block{std::move(holder)};
  substitute_loop(block, loop, value);
  return block.front().value;
}

// Number of uses of some locals, and the last reader.
struct LocalUse {
  std::size_t count = 0;
  const ScalarNode* reader = nullptr;
};
void count_uses(const Scalar& scalar, const std::set<std::size_t>& locals,
                std::set<const ScalarNode*>& seen, LocalUse& use) {
  for (const Scalar& arg : scalar->args) {
    if (arg->kind == ScalarKind::Local && locals.contains(arg->id)) {
      ++use.count;
      use.reader = &scalar.node();
    } else if (seen.insert(&arg.node()).second) {
      count_uses(arg, locals, seen, use);
    }
  }
}

Scalar with_replaced(const Scalar& scalar, const ScalarNode* old, const Scalar& by,
                     nests::ScalarMemo<Scalar>& memo) {
  if (&scalar.node() == old) return by;
  return memo.of(scalar, [&] {
    ScalarNode node = scalar.node();
    for (Scalar& arg : node.args) arg = with_replaced(arg, old, by, memo);
    return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
  });
}

// Initializes the accumulator with the addend of the epilogue, such as a bias: integer addition is
// associative.
void start_from_addend(Block& body) {
  std::set<std::size_t> names{body.front().id};
  std::set<const ScalarNode*> seen;
  LocalUse use;
  for (std::size_t k = 2; k < body.size(); ++k) {
    const Scalar& value = body[k].value;
    if (value->kind == ScalarKind::Local && names.contains(value->id)) {
      if (body[k].kind != Statement::Kind::Define) return;
      names.insert(body[k].id);
      continue;
    }
    count_uses(value, names, seen, use);
    for (const Scalar& index : body[k].indices) count_uses(index, names, seen, use);
  }
  if (use.count != 1 || use.reader->kind != ScalarKind::Binary ||
      use.reader->binary != BinaryOp::Add || use.reader->dtype != DType::I32)
    return;
  const bool is_first = use.reader->args[0]->kind == ScalarKind::Local;
  const Scalar sum = use.reader->args[is_first ? 0 : 1],
               addend = use.reader->args[is_first ? 1 : 0];
  const auto is_local = [](const ScalarNode& node) { return node.kind == ScalarKind::Local; };
  if (addend->kind != ScalarKind::Load || addend->dtype != DType::I32 ||
      addend->bounds != Bounds::Inside || nests::any_node(addend, is_local))
    return;
  body.front().value = addend;
  nests::ScalarMemo<Scalar> memo;
  for (std::size_t k = 2; k < body.size(); ++k)
    body[k].value = with_replaced(body[k].value, use.reader, sum, memo);
}

std::optional<std::vector<Packing>> tile_bytes(LoopNest& nest, Block& whole,
                                               const OuterLoops& around_it,
                                               const std::vector<bool>& may_pack,
                                               const TileShape& shape, LoopKind outermost,
                                               const TargetFacts& target) {
  IntegerRoles roles = find_integer_roles(whole, around_it, may_pack);
  if (!roles.refusal.empty()) return std::nullopt;
  const bool is_alone = outermost == LoopKind::Parallel;
  Contraction& c = roles.sum;
  if (!is_ready(roles)) return std::nullopt;
  const std::int64_t length = roles.dot->extent.constant(), steps = (length + kDot - 1) / kDot;

  const std::int64_t column_count = roles.columns->extent.constant();
  const std::int64_t width = width_for(column_count, shape.columns);
  const std::int64_t blocks = (column_count + width - 1) / width;
  const std::size_t column_id = roles.columns->id, dot_id = roles.dot->id;
  const std::size_t outer = nest.new_loop(concat(nest.loop_names[column_id], "o"));
  const std::size_t inner = nest.new_loop(concat(nest.loop_names[column_id], "i"));
  const std::size_t four = nest.new_loop(concat(nest.loop_names[dot_id], "o"));
  const std::size_t one = nest.new_loop(concat(nest.loop_names[dot_id], "i"));
  const Scalar column_start = times(loop_scalar(outer), integer_scalar(width));
  const Scalar column = plus(column_start, loop_scalar(inner));
  const Scalar position = plus(times(loop_scalar(four), integer_scalar(kDot)), loop_scalar(one));

  // VNNI layout of b: groups of four along the reduction for each column of a vector, vector after
  // vector.
  Packing packing;
  packing.buffer = c.b->id;
  packing.source_dims = c.b->view;
  packing.limit =
      std::numeric_limits<std::int64_t>::max() / 2;  // Reads outside the source are zero.
  const auto add = [&](std::size_t loop, std::int64_t extent) {
    packing.loops.push_back(loop);
    packing.extents.push_back(extent);
  };
  add(outer, blocks);
  for (const Statement& loop : around_it) {
    if (depends_on(c.b, loop.id)) add(loop.id, loop.extent.constant());
  }
  for (const Statement* loop : c.parallel) {
    if (loop != roles.columns && depends_on(c.b, loop->id)) add(loop->id, loop->extent.constant());
  }
  std::vector<const Statement*> around_dot;
  for (const Statement* loop : c.reduction) {
    if (loop != roles.dot) around_dot.push_back(loop);
    if (loop != roles.dot && depends_on(c.b, loop->id)) add(loop->id, loop->extent.constant());
  }
  add(four, steps);
  add(inner, width);
  add(one, kDot);
  const Scalar source = substituted(substituted(c.b, column_id, column), dot_id, position);
  packing.coordinates.assign(
      source->args.begin(),
      source->args.begin() + static_cast<std::ptrdiff_t>(source->view.size()));
  ScalarNode node = c.b.node();
  node.view = Dims(packing.extents.begin(), packing.extents.end());
  node.args.clear();
  for (const std::size_t loop : packing.loops) node.args.push_back(loop_scalar(loop));
  const Scalar packed(std::make_shared<const ScalarNode>(std::move(node)));
  nest.buffers[packing.buffer].dims = packed->view;

  // Rebuilds the loops inside out: dot, reduction, rows, columns, then the parallel loops.
  Block body = *c.inner;
  const Statement* innermost = &body[1];
  while (innermost->kind == Statement::Kind::Loop) innermost = &innermost->body.front();
  Statement sum = *innermost;
  const Scalar a = substituted(c.a, dot_id, position);
  sum.value = binary_scalar(BinaryOp::Multiply, DType::I32, cast_scalar(a, DType::I32),
                            cast_scalar(packed, DType::I32));
  const auto wrap = [](Statement& inside, std::size_t id, std::int64_t extent, LoopKind kind) {
    Statement loop;
    loop.id = id;
    loop.extent = extent;
    loop.loop = kind;
    loop.body = {std::move(inside)};
    inside = std::move(loop);
  };
  wrap(sum, one, kDot, LoopKind::Dot);
  wrap(sum, four, steps, LoopKind::Serial);
  for (std::size_t k = around_dot.size(); k-- > 0;) {
    Statement loop = *around_dot[k];
    loop.body = {std::move(sum)};
    sum = std::move(loop);
  }
  body[1] = std::move(sum);
  start_from_addend(body);
  substitute_loop(body, column_id, column);

  std::int64_t b_bytes = 1;
  for (const std::int64_t extent : packing.extents) b_bytes *= extent;
  // If a core's own cache holds all weights, column blocks are innermost, so that rows are read
  // once.
  const bool keeps_rows =
      (b_bytes <= static_cast<std::int64_t>(target.private_cache().bytes / 2)) !=
      shape.is_loop_order_swapped;
  std::vector<Statement> around;
  for (const Statement* loop : c.parallel) {
    if (loop == roles.columns || loop == roles.rows) continue;
    around.push_back(*loop);
    around.back().body.clear();
    around.back().loop = outermost;
  }
  Statement block_loop;
  block_loop.id = outer;
  block_loop.extent = blocks;
  block_loop.is_independent = true;
  block_loop.loop = outermost;
  around.insert(keeps_rows ? around.end() : around.begin(), std::move(block_loop));
  if (roles.rows != nullptr) {
    Statement jam = *roles.rows;
    jam.loop = LoopKind::Jam;
    jam.width = shape.rows;
    jam.body = std::move(body);
    std::vector<Dim> items;
    for (const Statement& loop : around) items.push_back(loop.extent);
    const auto block = jam.limit.is_defined() || !is_alone
                           ? std::nullopt
                           : rows_in_block(jam.extent, jam.width, items);
    const std::size_t row_id = jam.id;
    body = {std::move(jam)};
    if (block) {
      nests::split(nest, body, row_id, *block, "b");
      Statement row_blocks = std::move(body.front());
      body = std::move(row_blocks.body);
      body.front().loop = LoopKind::Jam;
      body.front().width = shape.rows;
      row_blocks.body.clear();
      row_blocks.loop = LoopKind::Parallel;
      row_blocks.width = 1;
      around.push_back(std::move(row_blocks));
    }
  }
  Statement vector;
  vector.id = inner;
  vector.extent = width;
  vector.loop = LoopKind::Vector;
  vector.width = static_cast<unsigned>(width);
  vector.is_independent = true;
  if (column_count % width != 0) {
    vector.limit = binary_scalar(
        BinaryOp::Minimum, DType::I64, integer_scalar(width),
        binary_scalar(BinaryOp::Subtract, DType::I64, integer_scalar(column_count), column_start));
  }
  vector.body = std::move(body);
  body = {std::move(vector)};
  for (std::size_t k = around.size(); k-- > 0;) {
    around[k].body = std::move(body);
    body = {std::move(around[k])};
  }
  whole = std::move(body);
  return std::vector<Packing>{std::move(packing)};
}

// The nest, or the first stage that can be tiled.
struct ByteStage {
  Block body;
  IntegerRoles roles;  // Roles of the body.
};
ByteStage find_byte_stage(LoopNest nest, const std::vector<bool>& may_pack) {
  ByteStage found;
  const Block* stages = stages_of(nest);
  if (stages == nullptr) {
    found.body = std::move(nest.body);
    found.roles = find_integer_roles(found.body, {}, may_pack);
    return found;
  }
  OuterLoops around;
  for (const Block* block = &nest.body; block != stages; block = &block->front().body) {
    around.push_back(block->front());
    around.back().body.clear();
  }
  for (const Statement& statement : *stages) {
    found.body = {statement};
    found.roles = find_integer_roles(found.body, around, may_pack);
    if (found.roles.refusal.empty() && is_ready(found.roles)) return found;
  }
  found.roles.refusal = "no stage is an int8 contraction with K a multiple of four";
  return found;
}

}  // namespace

std::string integer_tile_refusal(LoopNest nest, const std::vector<bool>& may_pack) {
  return find_byte_stage(std::move(nest), may_pack).roles.refusal;
}

bool fits_amx_tiles(LoopNest nest, const std::vector<bool>& may_pack) {
  constexpr std::int64_t kFewestRows = 4, kAmxReduction = 64, kColumns = 32;
  const ByteStage stage = find_byte_stage(std::move(nest), may_pack);
  const IntegerRoles& roles = stage.roles;
  if (!roles.refusal.empty() || roles.rows == nullptr || roles.rows->limit.is_defined())
    return false;
  return roles.rows->extent.is_constant() && roles.rows->extent.constant() >= kFewestRows &&
         roles.dot->extent.constant() % kAmxReduction == 0 &&
         roles.columns->extent.constant() >= kColumns;
}

std::optional<std::vector<Packing>> tile_integers(LoopNest& nest, const std::vector<bool>& may_pack,
                                                  const TileShape& shape,
                                                  const TargetFacts& target) {
  return reorder_stages(nest, [&](Block& stage, const OuterLoops& around, LoopKind outermost) {
    return tile_bytes(nest, stage, around, may_pack, shape, outermost, target);
  });
}

}  // namespace tenon::codegen::cpu
