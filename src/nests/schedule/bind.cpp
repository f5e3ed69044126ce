#include "nests/schedule/bind.h"

#include "base/error.h"
#include "nests/schedule/loops.h"

#include <algorithm>

namespace tenon::nests {
namespace {

bool has_jam(const Block& block) {
  return std::ranges::any_of(block, [](const Statement& statement) {
    return statement.kind == Statement::Kind::Loop &&
           (statement.loop == LoopKind::Jam || has_jam(statement.body));
  });
}

bool is_fold(const Block& body) {
  const Block* block = &body;
  while (block->size() == 1 && block->front().kind == Statement::Kind::Loop)
    block = &block->front().body;
  return block->size() == 1 && block->front().kind == Statement::Kind::Fold &&
         !block->front().place.is_defined();
}

}  // namespace

void bind_loop(Block& block, std::size_t loop, LoopKind kind, unsigned width) {
  Statement* found = find_loop(block, loop);
  TENON_ASSERT(found != nullptr, "the loop is there");
  TENON_ASSERT(width >= 1, "a loop runs one position at a time or more");
  switch (kind) {
    case LoopKind::Serial:
      TENON_ASSERT(width == 1 || (width == 2 && found->extent == Dim(2) && is_fold(found->body)),
                   "a pair is added up");
      break;
    case LoopKind::Parallel:
    case LoopKind::ParallelVector:
      TENON_ASSERT(found->is_independent && !found->limit.is_defined(),
                   "what is shared out is independent, with no limit");
      break;
    case LoopKind::Jam:
      TENON_ASSERT(found->is_independent && !has_jam(found->body), "jammed passes are independent");
      break;
    case LoopKind::Vector:
      TENON_ASSERT(found->is_independent || is_fold(found->body), "lanes are independent or fold");
      break;
    case LoopKind::Dot:
      TENON_ASSERT(found->extent == Dim(4) && is_fold(found->body), "a dot adds up four products");
      break;
  }
  found->loop = kind;
  found->width = width;
}

}  // namespace tenon::nests
