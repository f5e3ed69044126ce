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

Statement loop_of(std::size_t id, const Dim& extent, LoopKind kind, Block body) {
  Statement loop;
  loop.id = id;
  loop.extent = extent;
  loop.loop = kind;
  loop.body = std::move(body);
  return loop;
}

// Schedules an int8 contraction: columns in vectors, rows in jams, the reduction in dots of four.
class ByteTiler {
 public:
  ByteTiler(LoopNest& nest, const IntegerRoles& roles, const OuterLoops& around_it,
            const TileShape& shape, LoopKind outermost, const TargetFacts& target)
      : nest_(nest),
        roles_(roles),
        sum_(roles.sum),
        around_it_(around_it),
        shape_(shape),
        outermost_(outermost),
        target_(target),
        column_count_(roles.columns->extent.constant()),
        width_(width_for(column_count_, shape.columns)),
        blocks_((column_count_ + width_ - 1) / width_),
        steps_((roles.dot->extent.constant() + kDot - 1) / kDot) {}

  // Replaces the loops of `whole` and returns the packing of b.
  Packing run(Block& whole) {
    const std::size_t column_id = roles_.columns->id, dot_id = roles_.dot->id;
    outer_ = nest_.new_loop(concat(nest_.loop_names[column_id], "o"));
    inner_ = nest_.new_loop(concat(nest_.loop_names[column_id], "i"));
    four_ = nest_.new_loop(concat(nest_.loop_names[dot_id], "o"));
    one_ = nest_.new_loop(concat(nest_.loop_names[dot_id], "i"));
    column_start_ = times(loop_scalar(outer_), integer_scalar(width_));
    column_ = plus(column_start_, loop_scalar(inner_));
    position_ = plus(times(loop_scalar(four_), integer_scalar(kDot)), loop_scalar(one_));
    Packing packing = packing_of_columns();
    const Scalar packed = packed_load(packing);
    nest_.buffers[packing.buffer].dims = packed->view;
    Block body = dots(packed);
    std::vector<Statement> around = outer_loops(packing);
    if (roles_.rows != nullptr) body = rows(std::move(body), around);
    body = {columns(std::move(body))};
    for (std::size_t k = around.size(); k-- > 0;) {
      around[k].body = std::move(body);
      body = {std::move(around[k])};
    }
    whole = std::move(body);
    return packing;
  }

 private:
  // VNNI layout of b: groups of four along the reduction for each column of a vector, vector after
  // vector.
  Packing packing_of_columns() const {
    Packing packing;
    packing.buffer = sum_.b->id;
    packing.source_dims = sum_.b->view;
    packing.limit =
        std::numeric_limits<std::int64_t>::max() / 2;  // Reads outside the source are zero.
    const auto add = [&](std::size_t loop, std::int64_t extent) {
      packing.loops.push_back(loop);
      packing.extents.push_back(extent);
    };
    const auto add_if_used = [&](const Statement& loop) {
      if (depends_on(sum_.b, loop.id)) add(loop.id, loop.extent.constant());
    };
    add(outer_, blocks_);
    for (const Statement& loop : around_it_) add_if_used(loop);
    for (const Statement* loop : sum_.parallel) {
      if (loop != roles_.columns) add_if_used(*loop);
    }
    for (const Statement* loop : sum_.reduction) {
      if (loop != roles_.dot) add_if_used(*loop);
    }
    add(four_, steps_);
    add(inner_, width_);
    add(one_, kDot);
    const Scalar source =
        substituted(substituted(sum_.b, roles_.columns->id, column_), roles_.dot->id, position_);
    packing.coordinates.assign(
        source->args.begin(),
        source->args.begin() + static_cast<std::ptrdiff_t>(source->view.size()));
    return packing;
  }

  Scalar packed_load(const Packing& packing) const {
    ScalarNode node = sum_.b.node();
    node.view = Dims(packing.extents.begin(), packing.extents.end());
    node.args.clear();
    for (const std::size_t loop : packing.loops) node.args.push_back(loop_scalar(loop));
    return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
  }

  // The accumulation and the epilogue, with the reduction in dots.
  Block dots(const Scalar& packed) const {
    Block body = *sum_.inner;
    const Statement* innermost = &body[1];
    while (innermost->kind == Statement::Kind::Loop) innermost = &innermost->body.front();
    Statement sum = *innermost;
    const Scalar a = substituted(sum_.a, roles_.dot->id, position_);
    sum.value = binary_scalar(BinaryOp::Multiply, DType::I32, cast_scalar(a, DType::I32),
                              cast_scalar(packed, DType::I32));
    sum = loop_of(one_, kDot, LoopKind::Dot, {std::move(sum)});
    sum = loop_of(four_, steps_, LoopKind::Serial, {std::move(sum)});
    for (std::size_t k = sum_.reduction.size(); k-- > 0;) {
      if (sum_.reduction[k] == roles_.dot) continue;
      Statement loop = *sum_.reduction[k];
      loop.body = {std::move(sum)};
      sum = std::move(loop);
    }
    body[1] = std::move(sum);
    start_from_addend(body);
    substitute_loop(body, roles_.columns->id, column_);
    return body;
  }

  // The parallel loops except rows, and the loop over column blocks. If a core's own cache holds
  // all weights, column blocks are innermost, so that rows are read once.
  std::vector<Statement> outer_loops(const Packing& packing) const {
    std::int64_t b_bytes = 1;
    for (const std::int64_t extent : packing.extents) b_bytes *= extent;
    const bool keeps_rows =
        (b_bytes <= static_cast<std::int64_t>(target_.private_cache().bytes / 2)) !=
        shape_.is_loop_order_swapped;
    std::vector<Statement> around;
    for (const Statement* loop : sum_.parallel) {
      if (loop == roles_.columns || loop == roles_.rows) continue;
      around.push_back(*loop);
      around.back().body.clear();
      around.back().loop = outermost_;
    }
    Statement blocks = loop_of(outer_, blocks_, outermost_, {});
    blocks.is_independent = true;
    around.insert(keeps_rows ? around.end() : around.begin(), std::move(blocks));
    return around;
  }

  // Jams the rows. Blocks of rows become a further outer loop if those have too few iterations.
  Block rows(Block body, std::vector<Statement>& around) {
    Statement jam = *roles_.rows;
    jam.loop = LoopKind::Jam;
    jam.width = shape_.rows;
    jam.body = std::move(body);
    std::vector<Dim> items;
    for (const Statement& loop : around) items.push_back(loop.extent);
    const bool is_alone = outermost_ == LoopKind::Parallel;
    const auto block = jam.limit.is_defined() || !is_alone
                           ? std::nullopt
                           : rows_in_block(jam.extent, jam.width, items);
    const std::size_t row_id = jam.id;
    Block jammed{std::move(jam)};
    if (!block) return jammed;
    nests::split(nest_, jammed, row_id, *block, "b");
    Statement row_blocks = std::move(jammed.front());
    jammed = std::move(row_blocks.body);
    jammed.front().loop = LoopKind::Jam;
    jammed.front().width = shape_.rows;
    row_blocks.body.clear();
    row_blocks.loop = LoopKind::Parallel;
    row_blocks.width = 1;
    around.push_back(std::move(row_blocks));
    return jammed;
  }

  Statement columns(Block body) const {
    Statement vector = loop_of(inner_, width_, LoopKind::Vector, std::move(body));
    vector.width = static_cast<unsigned>(width_);
    vector.is_independent = true;
    if (column_count_ % width_ != 0) {
      vector.limit = binary_scalar(BinaryOp::Minimum, DType::I64, integer_scalar(width_),
                                   binary_scalar(BinaryOp::Subtract, DType::I64,
                                                 integer_scalar(column_count_), column_start_));
    }
    return vector;
  }

  LoopNest& nest_;
  const IntegerRoles& roles_;
  const Contraction& sum_;
  const OuterLoops& around_it_;
  const TileShape& shape_;
  const LoopKind outermost_;
  const TargetFacts& target_;
  const std::int64_t column_count_, width_, blocks_;        // Columns, per vector, and vectors.
  const std::int64_t steps_;                                // Dots.
  std::size_t outer_ = 0, inner_ = 0, four_ = 0, one_ = 0;  // New loops.
  Scalar column_start_, column_, position_;
};

std::optional<std::vector<Packing>> tile_bytes(LoopNest& nest, Block& whole,
                                               const OuterLoops& around_it,
                                               const std::vector<bool>& may_pack,
                                               const TileShape& shape, LoopKind outermost,
                                               const TargetFacts& target) {
  IntegerRoles roles = find_integer_roles(whole, around_it, may_pack);
  if (!roles.refusal.empty() || !is_ready(roles)) return std::nullopt;
  return std::vector<Packing>{
      ByteTiler(nest, roles, around_it, shape, outermost, target).run(whole)};
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
