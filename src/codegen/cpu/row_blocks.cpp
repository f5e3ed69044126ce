#include "codegen/cpu/row_blocks.h"

#include <algorithm>

#include "base/error.h"

namespace tenon::codegen::cpu {
namespace {

// Blocks of so many rows; the jammed loop goes through one of them.
Statement cut_rows(LoopNest& nest, Statement& jam, std::int64_t block) {
  const Dim count = jam.extent;
  const std::string name = nest.loop_names[jam.id];
  const std::size_t outer = nest.new_loop(concat(name, "b")), inner = nest.new_loop(concat(name, "i"));
  const Scalar first = binary_scalar(BinaryOp::Multiply, DType::I64, loop_scalar(outer), integer_scalar(block));
  substitute_loop(jam.body, jam.id, binary_scalar(BinaryOp::Add, DType::I64, first, loop_scalar(inner)));
  jam.id = inner;
  jam.extent = block;
  if (!(mod(count, block) == Dim(0))) {
    jam.limit = binary_scalar(BinaryOp::Minimum, DType::I64, integer_scalar(block),
                              binary_scalar(BinaryOp::Subtract, DType::I64, nest.extent(count), first));
  }
  Statement blocks;
  blocks.id = outer;
  blocks.extent = ceil_div(count, block);
  nest.extent(blocks.extent);
  blocks.is_independent = true;
  blocks.loop = LoopKind::Parallel;
  return blocks;
}

}  // namespace

std::optional<Statement> split_rows(LoopNest& nest, Statement& jam, const std::vector<Statement>& around) {
  constexpr std::int64_t kEnoughItems = 8, kUsualTiles = 8;
  std::int64_t items = 1;
  for (const Statement& loop : around) {
    // One that only the run knows may be a batch of one.
    if (loop.extent.is_constant()) items = std::min(items * loop.extent.constant(), kEnoughItems);
  }
  if (items == 0 || items >= kEnoughItems || jam.limit.is_defined()) return std::nullopt;
  const Dim count = jam.extent;
  const std::int64_t width = jam.width, wanted = (kEnoughItems + items - 1) / items;
  std::int64_t tiles_in_block = kUsualTiles;
  if (count.is_constant()) {
    const std::int64_t tiles = (count.constant() + width - 1) / width;
    if (tiles < 2) return std::nullopt;
    tiles_in_block = (tiles + wanted - 1) / wanted;
  }
  return cut_rows(nest, jam, tiles_in_block * width);
}

std::optional<Statement> rows_outermost(LoopNest& nest, Statement& jam, std::int64_t result_bytes, std::int64_t cache_bytes) {
  constexpr std::int64_t kTiles = 2;
  const std::int64_t block = kTiles * static_cast<std::int64_t>(jam.width);
  const bool is_fixed = jam.extent.is_constant() && !jam.limit.is_defined();
  if (!is_fixed || jam.extent.constant() < 4 * block || result_bytes <= cache_bytes) return std::nullopt;
  return cut_rows(nest, jam, block);
}

}  // namespace tenon::codegen::cpu
