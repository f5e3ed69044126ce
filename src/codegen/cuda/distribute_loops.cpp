#include "codegen/cuda/distribute_loops.h"

#include "codegen/cuda/binding.h"
#include "codegen/cuda/inline_copies.h"
#include "nests/index_map.h"
#include "nests/operand_copy.h"
#include "nests/scalar_walk.h"
#include "nests/schedule/loops.h"

#include <algorithm>
#include <set>
#include <string>

namespace tenon::codegen::cuda {
namespace {

constexpr std::int64_t kFewTurns = 4096;

// Buffers and outer locals that a loop reads and writes.
struct LoopUses {
  std::set<std::size_t> reads, writes;
  bool has_outer_locals = false;

  explicit LoopUses(const Statement& loop) {
    nests::for_each_load(loop.body, [&](const Scalar& load) { reads.insert(load->id); });
    std::set<std::size_t> defined;
    visit(loop.body, defined);
  }

 private:
  void visit(const Block& block, std::set<std::size_t>& defined) {
    for (const Statement& statement : block) {
      const bool is_stored =
          statement.kind == Statement::Kind::Store || statement.kind == Statement::Kind::Update;
      if (is_stored) writes.insert(statement.id);
      if (statement.value.is_defined() &&
          nests::any_node(statement.value, [&](const ScalarNode& node) {
            return node.kind == ScalarKind::Local && !defined.contains(node.id);
          }))
        has_outer_locals = true;
      if (statement.kind == Statement::Kind::Define) defined.insert(statement.id);
      visit(statement.body, defined);
    }
  }
};

bool share_any(const std::set<std::size_t>& a, const std::set<std::size_t>& b) {
  return std::ranges::any_of(a, [&](std::size_t id) { return b.contains(id); });
}

bool are_apart(const Block& block) {
  if (block.size() < 2 || !std::ranges::all_of(block, is_free)) return false;
  std::vector<LoopUses> uses(block.begin(), block.end());
  for (std::size_t j = 0; j < uses.size(); ++j) {
    if (uses[j].has_outer_locals) return false;
    for (std::size_t i = 0; i < j; ++i) {
      if (share_any(uses[i].writes, uses[j].reads) || share_any(uses[i].writes, uses[j].writes) ||
          share_any(uses[i].reads, uses[j].writes))
        return false;
    }
  }
  return true;
}

}  // namespace

void distribute_loops(NestSequence& sequence) {
  std::vector<NestSequence::NestCall> parts;
  for (NestSequence::NestCall& part : sequence.parts) {
    std::vector<const Statement*> around;
    const Block* block = &part.nest.body;
    Dim turns = 1;
    while (block->size() == 1 && is_free(block->front())) {
      around.push_back(&block->front());
      turns = turns * block->front().extent;
      block = &block->front().body;
    }
    const bool are_few = turns.is_constant() && turns.constant() < kFewTurns;
    if (part.is_indivisible || !are_few || !are_apart(*block)) {
      parts.push_back(std::move(part));
      continue;
    }
    for (std::size_t k = 0; k < block->size(); ++k) {
      NestSequence::NestCall one = part;
      one.nest.body = nests::in_loops(around, {(*block)[k]});
      if (k > 0) one.nest.name += "_" + std::to_string(k + 1);
      list_extents(one.nest);
      nests::drop_unused_buffers(one);
      parts.push_back(std::move(one));
    }
  }
  sequence.parts = std::move(parts);
}

}  // namespace tenon::codegen::cuda
