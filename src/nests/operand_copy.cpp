#include "nests/operand_copy.h"

#include "nests/index_map.h"

#include <map>

namespace tenon::nests {

std::size_t buffer_of(const NestSequence::NestCall& part, std::size_t id) {
  std::size_t given = 0;
  for (std::size_t k = 0; k < id; ++k)
    given += part.nest.buffers[k].storage != StorageClass::Scratch;
  return part.buffers[given];
}

void read_copy(NestSequence::NestCall& part, const Contraction& contraction, const Scalar& factor,
               NestBuffer copy, std::size_t number, ScalarNode read) {
  Statement* fold = nullptr;
  for (Block* block = &part.nest.body; fold == nullptr;) {
    Statement& statement = (*block)[block->size() > 1 ? 1 : 0];
    if (statement.kind == Statement::Kind::Fold) fold = &statement;
    block = &statement.body;
  }
  read.dtype = copy.dtype;
  read.id = part.nest.buffers.size();
  const Scalar load(std::make_shared<const ScalarNode>(std::move(read)));
  const bool is_first = &contraction.a.node() == &factor.node();
  fold->value = binary_scalar(BinaryOp::Multiply, fold->value->dtype,
                              is_first ? load : contraction.a, is_first ? contraction.b : load);
  part.nest.buffers.push_back(std::move(copy));
  part.buffers.push_back(number);
}

void drop_unused_buffers(NestSequence::NestCall& part) {
  std::vector<bool> is_used(part.nest.buffers.size(), false);
  for_each_load(part.nest.body, [&](const Scalar& load) { is_used[load->id] = true; });
  const auto note = [&](const auto& self, const Block& block) -> void {
    for (const Statement& statement : block) {
      if (statement.kind == Statement::Kind::Store || statement.kind == Statement::Kind::Update)
        is_used[statement.id] = true;
      self(self, statement.body);
    }
  };
  note(note, part.nest.body);
  std::map<std::size_t, BufferUse> uses;
  std::vector<NestBuffer> buffers;
  std::vector<std::size_t> given;
  std::size_t place = 0;
  for (std::size_t k = 0; k < is_used.size(); ++k) {
    const bool is_given = part.nest.buffers[k].storage != StorageClass::Scratch;
    if (is_used[k]) {
      uses[k] = {buffers.size(), {}, false};
      buffers.push_back(part.nest.buffers[k]);
      if (is_given) given.push_back(part.buffers[place]);
    }
    place += is_given;
  }
  part.nest.buffers = std::move(buffers);
  part.buffers = std::move(given);
  renumber_buffers(part.nest, uses);
}

}  // namespace tenon::nests
