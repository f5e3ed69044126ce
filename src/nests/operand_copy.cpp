#include "nests/operand_copy.h"

namespace tenon::nests {

std::size_t buffer_of(const NestSequence::Part& part, std::size_t id) {
  std::size_t given = 0;
  for (std::size_t k = 0; k < id; ++k) given += part.nest.buffers[k].storage != Storage::Scratch;
  return part.buffers[given];
}

void read_copy(NestSequence::Part& part, const Contraction& sum, const Scalar& factor, NestBuffer copy,
               std::size_t number, ScalarNode read) {
  Statement* fold = nullptr;
  for (Block* block = &part.nest.body; fold == nullptr;) {
    Statement& statement = (*block)[block->size() > 1 ? 1 : 0];
    if (statement.kind == Statement::Kind::Fold) fold = &statement;
    block = &statement.body;
  }
  read.dtype = copy.dtype;
  read.id = part.nest.buffers.size();
  const Scalar load(std::make_shared<const ScalarNode>(std::move(read)));
  const bool is_first = &sum.a.node() == &factor.node();
  fold->value = binary_scalar(BinaryOp::Multiply, fold->value->dtype, is_first ? load : sum.a, is_first ? sum.b : load);
  part.nest.buffers.push_back(std::move(copy));
  part.buffers.push_back(number);
}

}  // namespace tenon::nests
