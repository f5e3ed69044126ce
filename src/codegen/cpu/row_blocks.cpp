#include "codegen/cpu/row_blocks.h"

#include <algorithm>

#include "base/error.h"

namespace tenon::codegen::cpu {

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
  const std::int64_t block = tiles_in_block * width;
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

}  // namespace tenon::codegen::cpu
