// Winograd convolution F(2,3) and F(4,3): builds the transform and GEMM nests.
#include "codegen/cpu/winograd_nests.h"

#include "base/error.h"
#include "codegen/cpu/row_blocks.h"
#include "codegen/cpu/work_partition.h"
#include "expr/access.h"
#include "nests/index_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <unordered_map>

namespace tenon::codegen::cpu {
namespace {

constexpr std::int64_t kManyTiles = 100;

Scalar integers(BinaryOp op, const Scalar& a, const Scalar& b) {
  return binary_scalar(op, DType::I64, a, b);
}
Scalar plus(const Scalar& a, std::int64_t b) {
  return integers(BinaryOp::Add, a, integer_scalar(b));
}
Scalar times(const Scalar& a, std::int64_t b) {
  return integers(BinaryOp::Multiply, a, integer_scalar(b));
}
Scalar minus(const Scalar& a, const Scalar& b) { return integers(BinaryOp::Subtract, a, b); }
Scalar least(const Scalar& a, const Scalar& b) { return integers(BinaryOp::Minimum, a, b); }

// Bᵀ d: one row or column of an image tile.
std::vector<Scalar> transformed_image(const std::vector<Scalar>& d) {
  if (d.size() == 4)
    return {subtract(d[0], d[2]), add(d[1], d[2]), subtract(d[2], d[1]), subtract(d[1], d[3])};
  const Scalar even = subtract(d[4], scale(4, d[2])), odd = subtract(d[3], scale(4, d[1]));
  const Scalar even_2 = subtract(d[4], d[2]), odd_2 = scale(2, subtract(d[3], d[1]));
  return {add(scale(4, d[0]), subtract(d[4], scale(5, d[2]))),
          add(even, odd),
          subtract(even, odd),
          add(even_2, odd_2),
          subtract(even_2, odd_2),
          add(scale(4, d[1]), subtract(d[5], scale(5, d[3])))};
}

// Aᵀ m: one row or column of a result tile.
std::vector<Scalar> transformed_back(const std::vector<Scalar>& m) {
  const Scalar sum = add(m[1], m[2]), difference = subtract(m[1], m[2]);
  if (m.size() == 4) return {add(m[0], sum), subtract(difference, m[3])};
  const Scalar sum_2 = add(m[3], m[4]), difference_2 = subtract(m[3], m[4]);
  return {add(add(m[0], sum), sum_2), add(difference, scale(2, difference_2)),
          add(sum, scale(4, sum_2)), add(add(difference, scale(8, difference_2)), m[5])};
}

Statement loop(std::size_t id, const Dim& extent, LoopKind kind, unsigned width, Block body) {
  Statement statement;
  statement.id = id;
  statement.extent = extent;
  statement.loop = kind;
  statement.width = width;
  statement.is_independent = true;
  statement.body = std::move(body);
  return statement;
}

// Substitutes scalars for loops and locals, and renumbers buffers.
class Rewrite {
 public:
  std::map<std::size_t, Scalar> loops, locals;
  const std::map<std::size_t, std::size_t>* buffers = nullptr;
  std::optional<Bounds> bounds =
      std::nullopt;  // Bounds of loads: Inside, or Fill with 0; by default unchanged.

  Scalar operator()(const Scalar& scalar) {
    if (scalar->kind == ScalarKind::Loop && loops.contains(scalar->id)) return loops.at(scalar->id);
    if (scalar->kind == ScalarKind::Local && locals.contains(scalar->id))
      return locals.at(scalar->id);
    const auto known = done_.find(&scalar.node());
    if (known != done_.end()) return known->second;
    ScalarNode node = scalar.node();
    for (Scalar& arg : node.args) arg = (*this)(arg);
    if (node.kind == ScalarKind::Load) {
      node.id = buffers->at(node.id);
      if (bounds) {
        node.args.resize(node.view.size());
        if (*bounds == Bounds::Fill) node.args.push_back(literal_scalar(DType::F32, 0, 0));
        node.bounds = *bounds;
      }
    }
    const Scalar made = node.kind == ScalarKind::Binary
                            ? binary_scalar(node.binary, node.dtype, node.args[0], node.args[1])
                            : Scalar(std::make_shared<const ScalarNode>(std::move(node)));
    done_.emplace(&scalar.node(), made);
    return made;
  }

 private:
  std::unordered_map<const ScalarNode*, Scalar> done_;
};

class Nests {
 public:
  Nests(NestSequence& sequence, const NestSequence::NestCall& part, const WindowContraction& window,
        std::size_t derived, std::int64_t block, unsigned rows, unsigned lanes)
      : sequence_(sequence),
        from_(part),
        w_(window),
        derived_(derived),
        block_(block),
        rows_(rows),
        lanes_(lanes) {}

  std::vector<NestSequence::NestCall> run() {
    const std::int64_t kinds = w_.edge() * w_.edge();
    const Dim held = block_ > 0 ? Dim(block_) : w_.tiles();
    image_dims_ = {held, kinds, w_.weights.channels};
    result_dims_ = {held, kinds, w_.blocked_outputs()};
    std::vector<NestSequence::NestCall> parts;
    if (block_ > 0) {
      start("");
      const std::size_t blocks = nest().new_loop("b");
      first_tile_ = times(loop_scalar(blocks), block_);
      image_tiles_ = add_scratch("v", image_dims_);
      result_tiles_ = add_scratch("m", result_dims_);
      Block body = image_loops();
      for (Block more : {contraction_loops(), result_loops()}) {
        for (Statement& statement : more) body.push_back(std::move(statement));
      }
      nest().body = {
          loop(blocks, ceil_div(w_.tiles(), block_), LoopKind::Parallel, 1, std::move(body))};
      parts.push_back(finish());
      return parts;
    }
    first_tile_ = integer_scalar(0);
    sequence_.buffers.push_back({NestSequence::BufferRole::Temporary, 0, DType::F32, image_dims_});
    sequence_.buffers.push_back({NestSequence::BufferRole::Temporary, 0, DType::F32, result_dims_});
    const std::size_t image = sequence_.buffers.size() - 2, result = image + 1;
    start("_image");
    image_tiles_ = use(image, StorageClass::Result);
    nest().body = image_loops();
    parts.push_back(finish());
    start("_products");
    image_tiles_ = use(image, StorageClass::Operand);
    result_tiles_ = use(result, StorageClass::Result);
    nest().body = contraction_loops();
    parts.push_back(finish());
    start("");
    result_tiles_ = use(result, StorageClass::Operand);
    nest().body = result_loops();
    parts.push_back(finish());
    return parts;
  }

 private:
  LoopNest& nest() { return part_.nest; }

  void start(const char* suffix) {
    part_ = {};
    part_.nest.name = from_.nest.name + suffix;
    used_.clear();
  }

  NestSequence::NestCall finish() {
    list_extents(nest());
    return std::move(part_);
  }

  // Returns the nest's index of a sequence buffer.
  std::size_t use(std::size_t buffer, StorageClass storage) {
    const auto [found, is_new] = used_.try_emplace(buffer, nest().buffers.size());
    if (is_new) {
      const NestSequence::Buffer& made = sequence_.buffers[buffer];
      nest().buffers.push_back(
          {concat("x", nest().buffers.size()), made.dtype, made.dims, storage});
      part_.buffers.push_back(buffer);
    }
    return found->second;
  }

  std::size_t add_scratch(const char* name, const Dims& dims) {
    nest().buffers.push_back({name, DType::F32, dims, StorageClass::Scratch});
    return nest().buffers.size() - 1;
  }

  // Maps buffer indices of the replaced nest to this nest.
  std::map<std::size_t, std::size_t> numbers_of(const Block& statements, bool with_stores) {
    std::map<std::size_t, std::size_t> numbers;
    const auto add_number = [&](std::size_t id) {
      numbers[id] = use(from_.buffers[id], from_.nest.buffers[id].storage);
    };
    for_each_load(statements, [&](const Scalar& load) { add_number(load->id); });
    for (const Statement& statement : statements) {
      if (with_stores && statement.kind == Statement::Kind::Store) add_number(statement.id);
    }
    return numbers;
  }

  Scalar load(std::size_t buffer, const Dims& dims, std::vector<Scalar> at) {
    ScalarNode node;
    node.kind = ScalarKind::Load;
    node.dtype = DType::F32;
    node.id = buffer;
    node.view = dims;
    node.args = std::move(at);
    return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
  }

  Statement store(std::size_t buffer, const Dims& dims, std::vector<Scalar> at, Scalar value) {
    Statement statement;
    statement.kind = Statement::Kind::Store;
    statement.id = buffer;
    statement.view = dims;
    statement.indices = std::move(at);
    statement.value = std::move(value);
    return statement;
  }

  // Conditional: a loop that runs once if `count` is positive.
  Statement only_if(const Scalar& count, Block body) {
    Statement statement = loop(nest().new_loop("if"), 1, LoopKind::Serial, 1, std::move(body));
    statement.limit = least(integer_scalar(1), count);
    return statement;
  }

  Scalar named(Block& block, const Scalar& value) {
    const std::size_t local = nest().new_local(DType::F32);
    block.push_back(define_statement(local, value));
    return local_scalar(local, DType::F32);
  }

  struct Tile {
    Scalar held, batch, row, column;  // Index within the block; its origin in the result.
  };
  Tile tile(std::size_t id) {
    Tile at;
    at.held = loop_scalar(id);
    const Scalar number = integers(BinaryOp::Add, first_tile_, at.held);
    const Scalar columns = nest().extent(w_.tile_columns()), rows = nest().extent(w_.tile_rows());
    const Scalar line = integers(BinaryOp::Divide, number, columns);
    at.column = beginning(minus(number, integers(BinaryOp::Multiply, line, columns)), w_.columns,
                          w_.column_step);
    at.batch = w_.batches == Dim(1) ? integer_scalar(0) : integers(BinaryOp::Divide, line, rows);
    at.row =
        beginning(minus(line, integers(BinaryOp::Multiply, at.batch, rows)), w_.rows, w_.row_step);
    return at;
  }
  // Tiles of the phases are interleaved.
  Scalar beginning(const Scalar& number, const Dim& extent, std::int64_t step) const {
    const std::int64_t phases = WindowContraction::phases(extent, step);
    if (phases == 1) return times(number, w_.weights.tile * step);
    const Scalar turn = integers(BinaryOp::Divide, number, integer_scalar(phases));
    return integers(BinaryOp::Add, times(turn, w_.weights.tile * step),
                    minus(number, times(turn, phases)));
  }
  Block tile_loop(std::size_t id, Block body) {
    Statement statement = loop(
        id, image_dims_[0], block_ > 0 ? LoopKind::Serial : LoopKind::Parallel, 1, std::move(body));
    const Dim tiles = w_.tiles();
    if (block_ > 0 && !(tiles.is_constant() && tiles.constant() % block_ == 0)) {
      statement.limit = least(integer_scalar(block_), minus(nest().extent(tiles), first_tile_));
    }
    return {std::move(statement)};
  }

  Block image_loops() {
    const std::size_t id = nest().new_loop("t");
    const Tile at = tile(id);
    const std::int64_t edge = w_.edge();
    const Scalar row = plus(at.row, w_.first_row), column = plus(at.column, w_.first_column);
    const std::int64_t row_reach = (edge - 1) * w_.row_step + 1,
                       column_reach = (edge - 1) * w_.column_step + 1;
    const std::array<Scalar, 4> distances = {
        row, minus(plus(nest().extent(w_.image_rows), -row_reach), row), column,
        minus(plus(nest().extent(w_.image_columns), -column_reach), column)};
    // With few tiles most overlap an edge, and a separate interior path only costs compile time.
    const bool always_overlaps = std::ranges::any_of(distances, [](const Scalar& distance) {
      return distance->kind == ScalarKind::Integer && distance->integer < 0;
    });
    if (w_.tiles_hint() < kManyTiles || always_overlaps)
      return tile_loop(id, {image_tile(at, false)});
    // Distance of the tile from the nearest image edge; negative if it overlaps the edge.
    const Scalar distance =
        least(least(distances[0], distances[1]), least(distances[2], distances[3]));
    if (distance->kind == ScalarKind::Integer) return tile_loop(id, {image_tile(at, true)});
    return tile_loop(id, {only_if(plus(distance, 1), {image_tile(at, true)}),
                          only_if(minus(integer_scalar(0), distance), {image_tile(at, false)})});
  }

  Statement image_tile(const Tile& at, bool is_inside) {
    const std::size_t channel = nest().new_loop("c");
    const std::int64_t edge = w_.edge();
    Block numbered(1);
    numbered.front().value = w_.image;
    const std::map<std::size_t, std::size_t> numbers = numbers_of(numbered, false);
    Block body;
    std::vector<std::vector<Scalar>> half(static_cast<std::size_t>(edge));  // By row, then column.
    for (std::int64_t j = 0; j < edge; ++j) {
      std::vector<Scalar> column;
      for (std::int64_t i = 0; i < edge; ++i) {
        Rewrite rewrite;
        rewrite.buffers = &numbers;
        // Also needed if all windows are inside: an edge tile reads pixels beyond the last window.
        rewrite.bounds = is_inside ? Bounds::Inside : Bounds::Fill;
        if (w_.batch) rewrite.loops[*w_.batch] = at.batch;
        rewrite.loops[w_.row] = at.row;
        rewrite.loops[w_.window_row] = integer_scalar(w_.flips_rows ? 2 - i : i);
        rewrite.loops[w_.column] = at.column;
        rewrite.loops[w_.window_column] = integer_scalar(w_.flips_columns ? 2 - j : j);
        rewrite.loops[w_.channel] = loop_scalar(channel);
        column.push_back(rewrite(w_.image));
      }
      const std::vector<Scalar> values = transformed_image(column);
      for (std::size_t i = 0; i < values.size(); ++i) half[i].push_back(named(body, values[i]));
    }
    std::int64_t kind = 0;
    for (const std::vector<Scalar>& row : half) {
      for (const Scalar& value : transformed_image(row)) {
        body.push_back(store(image_tiles_, image_dims_,
                             {at.held, integer_scalar(kind++), loop_scalar(channel)}, value));
      }
    }
    return loop(channel, w_.weights.channels, LoopKind::Vector, lanes_, std::move(body));
  }

  Block contraction_loops() {
    const std::size_t kind = nest().new_loop("k"), outer = nest().new_loop("oo"),
                      inner = nest().new_loop("oi");
    const std::size_t row = nest().new_loop("t"), channel = nest().new_loop("c"),
                      total = nest().new_local(DType::F32);
    const std::size_t weights = use(derived_, StorageClass::Operand);
    // Prefetches the next column block while the current one is used.
    nest().buffers[weights].ahead = w_.weights.channels * w_.weights.columns;
    Statement fold;
    fold.kind = Statement::Kind::Fold;
    fold.id = total;
    fold.reduction = Reduction::Sum;
    fold.value = binary_scalar(
        BinaryOp::Multiply, DType::F32,
        load(image_tiles_, image_dims_,
             {loop_scalar(row), loop_scalar(kind), loop_scalar(channel)}),
        load(weights, w_.weights.dims(),
             {loop_scalar(kind), loop_scalar(outer), loop_scalar(channel), loop_scalar(inner)}));
    Statement sum = loop(channel, w_.weights.channels, LoopKind::Serial, 1, {std::move(fold)});
    sum.is_independent = false;
    const Scalar output =
        integers(BinaryOp::Add, times(loop_scalar(outer), w_.weights.columns), loop_scalar(inner));
    Block body{define_statement(total, literal_scalar(DType::F32, 0, 0)), std::move(sum),
               store(result_tiles_, result_dims_, {loop_scalar(row), loop_scalar(kind), output},
                     local_scalar(total, DType::F32))};
    const LoopKind shared = block_ > 0 ? LoopKind::Serial : LoopKind::Parallel;
    body = {loop(row, image_dims_[0], LoopKind::Jam, rows_, std::move(body))};
    body = {loop(inner, w_.weights.columns, LoopKind::Vector,
                 static_cast<unsigned>(w_.weights.columns), std::move(body))};
    body = {loop(outer, w_.weights.blocks(), shared, 1, std::move(body))};
    return {loop(kind, image_dims_[1], shared, 1, std::move(body))};
  }

  Block result_loops() {
    const std::size_t id = nest().new_loop("t"), output = nest().new_loop("o");
    const Tile at = tile(id);
    const std::int64_t edge = w_.edge();
    Block body;
    std::vector<std::vector<Scalar>> half(static_cast<std::size_t>(w_.weights.tile));
    for (std::int64_t j = 0; j < edge; ++j) {
      std::vector<Scalar> column;
      for (std::int64_t i = 0; i < edge; ++i) {
        column.push_back(load(result_tiles_, result_dims_,
                              {at.held, integer_scalar(i * edge + j), loop_scalar(output)}));
      }
      const std::vector<Scalar> values = transformed_back(column);
      for (std::size_t i = 0; i < values.size(); ++i) half[i].push_back(named(body, values[i]));
    }
    // Tiles at the far edges contain results outside of the image.
    const auto guarded = [&](Block& block, const Scalar& position, const Dim& extent,
                             std::int64_t step, std::int64_t k, Block inside) {
      const Dim last_tile = Dim(w_.weights.tile) * (w_.phase_tiles(extent, step) - Dim(1));
      const Dim last =
          Dim(WindowContraction::phases(extent, step) - 1) + Dim(step) * (last_tile + Dim(k));
      if (provably_at_most(last + Dim(1), extent)) {
        for (Statement& statement : inside) block.push_back(std::move(statement));
      } else {
        block.push_back(only_if(minus(nest().extent(extent), position), std::move(inside)));
      }
    };
    const Block rest(w_.sum.inner->begin() + 2, w_.sum.inner->end());
    const std::map<std::size_t, std::size_t> numbers = numbers_of(rest, true);
    for (std::int64_t i = 0; i < w_.weights.tile; ++i) {
      const Scalar row = plus(at.row, i * w_.row_step);
      Block line;
      std::vector<Scalar> values = transformed_back(half[static_cast<std::size_t>(i)]);
      for (Scalar& value : values) value = named(line, value);
      for (std::int64_t j = 0; j < w_.weights.tile; ++j) {
        const Scalar column = plus(at.column, j * w_.column_step);
        Rewrite rewrite;
        rewrite.buffers = &numbers;
        if (w_.batch) rewrite.loops[*w_.batch] = at.batch;
        rewrite.loops[w_.row] = row;
        rewrite.loops[w_.column] = column;
        rewrite.loops[w_.output] = loop_scalar(output);
        rewrite.locals[w_.sum.inner->front().id] = values[static_cast<std::size_t>(j)];
        guarded(line, column, w_.columns, w_.column_step, j, rewritten(rest, rewrite));
      }
      guarded(body, row, w_.rows, w_.row_step, i, std::move(line));
    }
    return tile_loop(id,
                     {loop(output, w_.weights.outputs, LoopKind::Vector, lanes_, std::move(body))});
  }

  Block rewritten(const Block& statements, Rewrite& rewrite) {
    Block made;
    for (Statement statement : statements) {
      statement.value = rewrite(statement.value);
      if (statement.kind == Statement::Kind::Define) {
        const DType dtype = from_.nest.locals[statement.id];
        const std::size_t local = nest().new_local(dtype);
        rewrite.locals[statement.id] = local_scalar(local, dtype);
        statement.id = local;
      } else {
        for (Scalar& index : statement.indices) index = rewrite(index);
        statement.id = rewrite.buffers->at(statement.id);
      }
      made.push_back(std::move(statement));
    }
    return made;
  }

  NestSequence& sequence_;
  const NestSequence::NestCall& from_;
  const WindowContraction& w_;
  const std::size_t derived_;
  const std::int64_t block_;
  const unsigned rows_;   // Rows of a GEMM tile.
  const unsigned lanes_;  // Lanes of the transforms.
  NestSequence::NestCall part_;
  std::map<std::size_t, std::size_t> used_;
  Scalar first_tile_;
  std::size_t image_tiles_ = 0, result_tiles_ = 0;  // Buffers of the nest.
  Dims image_dims_, result_dims_;
};

}  // namespace

std::int64_t WindowContraction::phases(const Dim& extent, std::int64_t step) {
  return extent.is_constant() && extent.constant() < step ? extent.constant() : step;
}

Dim WindowContraction::phase_tiles(const Dim& extent, std::int64_t step) const {
  return ceil_div(ceil_div(extent, step), weights.tile);
}

std::int64_t WindowContraction::tiles_hint() const {
  return batches_hint() * static_cast<std::int64_t>(size_hint(tile_rows() * tile_columns()));
}

std::int64_t WindowContraction::blocked_outputs() const {
  return weights.blocks() * weights.columns;
}

std::int64_t winograd_columns(const WindowContraction& window, const TargetFacts& facts) {
  const std::int64_t wide = tile_for(facts.registers, facts.vector_bits).columns;
  return window.weights.outputs % wide == 0 ? wide : window.weights.columns;
}

// Rows of narrow GEMM tiles: the number of accumulators should exceed the FMA latency by half on
// all units of a core. The result is bounded by the rows that L1 holds despite set conflicts.
unsigned product_rows(const WindowContraction& window, const TargetFacts& facts) {
  constexpr double kLatency = 4;
  const std::int64_t distance = window.edge() * window.edge() * window.weights.channels;
  const double in_cache = rows_in_cache(distance, facts);
  const TileShape usual = tile_for(facts.registers, facts.vector_bits);
  double wanted = usual.rows;
  if (window.weights.columns < usual.columns) {
    const double lanes = facts.vector_bits / 32.0;
    wanted = std::ceil(1.5 * kLatency * facts.multiply_adds_per_cycle() / lanes);
  }
  return static_cast<unsigned>(std::max(std::min(wanted, in_cache), 6.0));
}

std::vector<NestSequence::NestCall> winograd_nests(NestSequence& sequence,
                                                   const NestSequence::NestCall& part,
                                                   const WindowContraction& window,
                                                   std::size_t derived, std::int64_t block,
                                                   const TargetFacts& facts) {
  return Nests(sequence, part, window, derived, block, product_rows(window, facts),
               facts.vector_bits / 32)
      .run();
}

}  // namespace tenon::codegen::cpu
