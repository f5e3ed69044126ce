#include "codegen/row_blocks.h"

#include <algorithm>

#include "base/error.h"

namespace tenon::codegen {

std::optional<Statement> split_rows(LoopNest& nest, Statement& jam, const std::vector<Statement>& around) {
  constexpr std::int64_t kEnoughItems = 8;
  std::int64_t items = 1;
  for (const Statement& loop : around) {
    if (!loop.extent.is_constant()) return std::nullopt;
    items = std::min(items * loop.extent.constant(), kEnoughItems);
  }
  if (items == 0 || items >= kEnoughItems || !jam.extent.is_constant() || jam.limit.is_defined()) return std::nullopt;
  const std::int64_t count = jam.extent.constant(), width = jam.width;
  const std::int64_t tiles = (count + width - 1) / width, wanted = (kEnoughItems + items - 1) / items;
  if (tiles < 2) return std::nullopt;
  const std::int64_t block = (tiles + wanted - 1) / wanted * width;
  const std::string name = nest.loop_names[jam.id];
  const std::size_t outer = nest.new_loop(concat(name, "b")), inner = nest.new_loop(concat(name, "i"));
  const Scalar first = binary_scalar(BinaryOp::Multiply, DType::I64, loop_scalar(outer), integer_scalar(block));
  substitute_loop(jam.body, jam.id, binary_scalar(BinaryOp::Add, DType::I64, first, loop_scalar(inner)));
  jam.id = inner;
  jam.extent = block;
  if (count % block != 0) {
    jam.limit = binary_scalar(BinaryOp::Minimum, DType::I64, integer_scalar(block),
                              binary_scalar(BinaryOp::Subtract, DType::I64, integer_scalar(count), first));
  }
  Statement blocks;
  blocks.id = outer;
  blocks.extent = (count + block - 1) / block;
  blocks.is_independent = true;
  blocks.loop = LoopKind::Parallel;
  return blocks;
}

}  // namespace tenon::codegen
