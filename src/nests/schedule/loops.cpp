#include "nests/schedule/loops.h"

#include <utility>

namespace tenon::nests {

Block* block_of(Block& block, std::size_t loop) {
  for (Statement& statement : block) {
    if (statement.kind != Statement::Kind::Loop) continue;
    if (statement.id == loop) return &block;
    if (Block* found = block_of(statement.body, loop)) return found;
  }
  return nullptr;
}

Statement* find_loop(Block& block, std::size_t loop) {
  Block* found = block_of(block, loop);
  if (found == nullptr) return nullptr;
  for (Statement& statement : *found) {
    if (statement.kind == Statement::Kind::Loop && statement.id == loop) return &statement;
  }
  return nullptr;
}

Statement header_of(const Statement& loop) {
  Statement header;
  header.kind = loop.kind;
  header.id = loop.id;
  header.extent = loop.extent;
  header.limit = loop.limit;
  header.loop = loop.loop;
  header.is_independent = loop.is_independent;
  header.width = loop.width;
  return header;
}

Block in_loops(const std::vector<const Statement*>& loops, Block body) {
  for (std::size_t k = loops.size(); k-- > 0;) {
    Statement loop = header_of(*loops[k]);
    loop.body = std::move(body);
    body = {std::move(loop)};
  }
  return body;
}

}  // namespace tenon::nests
