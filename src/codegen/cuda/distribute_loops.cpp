#include "codegen/cuda/distribute_loops.h"

#include "codegen/cuda/binding.h"
#include "codegen/cuda/inline_copies.h"
#include "nests/affine.h"
#include "nests/index_map.h"
#include "nests/operand_copy.h"
#include "nests/scalar_walk.h"
#include "nests/schedule/loops.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace tenon::codegen::cuda {
namespace {

constexpr std::int64_t kFewTurns = 4096;
// Fewer blocks leave multiprocessors idle.
constexpr std::int64_t kFewBlocks = 128;
// Elements of an iteration above which a pass through memory costs less than idle multiprocessors.
constexpr std::int64_t kLongIteration = 1 << 12;
// Assumed trip count of a symbolic inner extent.
constexpr std::int64_t kAssumedExtent = 64;

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

std::int64_t nested_trips(const Statement& loop) {
  std::int64_t inside = 1;
  for (const Statement& statement : loop.body) {
    if (statement.kind == Statement::Kind::Loop) inside = std::max(inside, nested_trips(statement));
  }
  const std::int64_t extent = loop.extent.is_constant() ? loop.extent.constant() : kAssumedExtent;
  return std::min(extent * inside, kLongIteration);
}

// Symbols count with their least value: a symbolic batch is often 1.
std::int64_t least_turns(const std::vector<const Statement*>& around) {
  std::int64_t turns = 1;
  for (const Statement* loop : around)
    turns = std::min(turns * std::max<std::int64_t>(1, loop->extent.range().lo), kFewBlocks);
  return turns;
}

// True if both loops have the same extent and the second reads what the first writes in the same
// iteration only.
bool are_aligned(const Statement& first, const Statement& second) {
  if (!(first.extent == second.extent)) return false;
  const LoopUses a(first), b(second);
  if (share_any(a.reads, b.writes) || share_any(a.writes, b.writes)) return false;
  Block stored = first.body;
  std::map<std::size_t, std::set<std::size_t>> axes;  // along which the first loop runs, by buffer
  nests::for_each_statement(stored, [&](const Statement& store) {
    if (store.kind != Statement::Kind::Store && store.kind != Statement::Kind::Update) return;
    std::set<std::size_t> moved;
    for (std::size_t axis = 0; axis < store.indices.size(); ++axis) {
      if (store.indices[axis]->kind == ScalarKind::Loop && store.indices[axis]->id == first.id)
        moved.insert(axis);
    }
    const auto [found, is_new] = axes.try_emplace(store.id, moved);
    if (!is_new && found->second != moved) found->second.clear();
  });
  bool suits = true;
  nests::for_each_load(second.body, [&](const Scalar& load) {
    if (!a.writes.contains(load->id)) return;
    const std::set<std::size_t>& moved = axes.at(load->id);
    suits &= !moved.empty() && std::ranges::all_of(moved, [&](std::size_t axis) {
      return load->args[axis]->kind == ScalarKind::Loop && load->args[axis]->id == second.id;
    });
  });
  return suits;
}

// Fuses neighbouring loops over rows, e.g. a mean and a variance of the same rows.
Block fused_rows(Block block) {
  Block fused;
  for (Statement& loop : block) {
    if (fused.empty() || !are_aligned(fused.back(), loop)) {
      fused.push_back(std::move(loop));
      continue;
    }
    if (loop.id != fused.back().id)
      nests::substitute_loop(loop.body, loop.id, loop_scalar(fused.back().id));
    for (Statement& statement : loop.body) fused.back().body.push_back(std::move(statement));
  }
  return fused;
}

// Splits a block where no scratch buffer is used on both sides.
std::vector<Block> stages_of(const LoopNest& nest, const Block& block) {
  std::vector<std::set<std::size_t>> scratch;
  for (const Statement& loop : block) {
    const LoopUses uses(loop);
    std::set<std::size_t>& own = scratch.emplace_back();
    for (const auto* ids : {&uses.reads, &uses.writes}) {
      for (const std::size_t id : *ids) {
        if (nest.buffers[id].storage == StorageClass::Scratch) own.insert(id);
      }
    }
  }
  std::vector<Block> stages;
  for (std::size_t k = 0; k < block.size(); ++k) {
    bool is_cut = k > 0;
    for (std::size_t i = 0; i < k && is_cut; ++i) {
      for (std::size_t j = k; j < block.size(); ++j) is_cut &= !share_any(scratch[i], scratch[j]);
    }
    if (is_cut || stages.empty()) stages.emplace_back();
    stages.back().push_back(block[k]);
  }
  return stages;
}

// Returns the stages of an iteration that is long and would occupy one of few blocks, else none.
std::vector<Block> long_stages(const LoopNest& nest, const std::vector<const Statement*>& around,
                               const Block& block) {
  if (block.size() < 2 || around.empty() || !std::ranges::all_of(block, is_free)) return {};
  const bool is_long = std::ranges::any_of(
      block, [](const Statement& loop) { return nested_trips(loop) >= kLongIteration; });
  const bool is_private = std::ranges::any_of(
      block, [](const Statement& loop) { return LoopUses(loop).has_outer_locals; });
  if (!is_long || is_private || least_turns(around) >= kFewBlocks) return {};
  std::vector<Block> stages = stages_of(nest, fused_rows(block));
  return stages.size() > 1 ? stages : std::vector<Block>{};
}

bool is_same_place(const Scalar& load, const Statement& store) {
  if (load->view != store.view || load->bounds != Bounds::Inside) return false;
  return std::ranges::equal(load->args, store.indices, [](const Scalar& x, const Scalar& y) {
    const auto a = nests::affine_of(x), b = nests::affine_of(y);
    return a && b && *a == *b;
  });
}

std::size_t stores_to(const Block& block, std::size_t buffer) {
  std::size_t count = 0;
  for (const Statement& statement : block) {
    const bool is_store =
        statement.kind == Statement::Kind::Store || statement.kind == Statement::Kind::Update;
    count += (is_store && statement.id == buffer) + stores_to(statement.body, buffer);
  }
  return count;
}

// Statements of fused loops pass numbers through locals instead of scratch.
void forward_scratch(LoopNest& nest, Block& block) {
  for (std::size_t k = 0; k < block.size(); ++k) {
    forward_scratch(nest, block[k].body);
    const bool is_scratch = block[k].kind == Statement::Kind::Store &&
                            nest.buffers[block[k].id].storage == StorageClass::Scratch;
    if (!is_scratch || stores_to(nest.body, block[k].id) != 1) continue;
    const Statement store = block[k];
    const DType dtype = nest.buffers[store.id].dtype;
    const std::size_t local = nest.new_local(dtype);
    Block after(block.begin() + static_cast<std::ptrdiff_t>(k) + 1, block.end());
    nests::ScalarRewriter([&](ScalarNode node) {
      const bool is_read = node.kind == ScalarKind::Load && node.id == store.id;
      Scalar scalar(std::make_shared<const ScalarNode>(std::move(node)));
      return is_read && is_same_place(scalar, store) ? local_scalar(local, dtype) : scalar;
    }).apply(after);
    std::ranges::move(after, block.begin() + static_cast<std::ptrdiff_t>(k) + 1);
    bool is_still_read = false;
    nests::for_each_load(nest.body,
                         [&](const Scalar& load) { is_still_read |= load->id == store.id; });
    Statement define = nests::define_statement(local, nests::cast_scalar(store.value, dtype));
    if (!is_still_read) {
      block[k] = std::move(define);
    } else {
      block.insert(block.begin() + static_cast<std::ptrdiff_t>(k++), std::move(define));
    }
  }
}

// A stage only reads the buffers that another stage writes.
void mark_operands(LoopNest& nest) {
  std::set<std::size_t> written;
  nests::for_each_statement(nest.body, [&](const Statement& statement) {
    if (statement.kind == Statement::Kind::Store || statement.kind == Statement::Kind::Update)
      written.insert(statement.id);
  });
  for (std::size_t k = 0; k < nest.buffers.size(); ++k) {
    if (nest.buffers[k].storage == StorageClass::Result && !written.contains(k))
      nest.buffers[k].storage = StorageClass::Operand;
  }
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
    std::vector<Block> stages;
    if (!part.is_indivisible && are_few && are_apart(*block)) {
      for (const Statement& loop : *block) stages.push_back({loop});
    } else if (!part.is_indivisible) {
      stages = long_stages(part.nest, around, *block);
    }
    if (stages.empty()) {
      parts.push_back(std::move(part));
      continue;
    }
    for (std::size_t k = 0; k < stages.size(); ++k) {
      NestSequence::NestCall one = part;
      one.nest.body = nests::in_loops(around, std::move(stages[k]));
      forward_scratch(one.nest, one.nest.body);
      if (k > 0) one.nest.name += "_" + std::to_string(k + 1);
      list_extents(one.nest);
      nests::drop_unused_buffers(one);
      mark_operands(one.nest);
      parts.push_back(std::move(one));
    }
  }
  sequence.parts = std::move(parts);
}

}  // namespace tenon::codegen::cuda
