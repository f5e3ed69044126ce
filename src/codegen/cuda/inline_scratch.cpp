#include "codegen/cuda/inline_scratch.h"

#include "codegen/cuda/binding.h"
#include "codegen/cuda/inline_copies.h"
#include "nests/affine.h"
#include "nests/index_map.h"
#include "nests/operand_copy.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace tenon::codegen::cuda {
namespace {

// A band of independent loops that writes each element of a scratch buffer exactly once.
struct Filling {
  LoopBand band;
  const Statement* store = nullptr;  // last statement of the body
};

std::int64_t positions(const LoopBand& band) {
  Dim count = 1;
  for (const Statement* loop : band.loops) count = count * loop->extent;
  return count.is_constant() ? count.constant() : 0;
}

std::optional<Filling> filling(const LoopNest& nest, const Statement& loop) {
  if (!is_free(loop)) return std::nullopt;
  Filling found{band_of(loop), nullptr};
  const Block& inner = *found.band.inner;
  if (inner.empty() || inner.back().kind != Statement::Kind::Store) return std::nullopt;
  const bool is_one = std::all_of(inner.begin(), inner.end() - 1, [](const Statement& statement) {
    if (statement.kind == Statement::Kind::Define) return true;
    return statement.kind == Statement::Kind::Loop && is_fold_band(band_of(statement));
  });
  found.store = &inner.back();
  if (!is_one || nest.buffers[found.store->id].storage != StorageClass::Scratch)
    return std::nullopt;
  // Each loop indexes one axis.
  std::size_t axes = 0;
  for (const Scalar& index : found.store->indices) {
    if (index->kind == ScalarKind::Loop)
      ++axes;
    else if (!nests::is_integer(index, 0))
      return std::nullopt;
  }
  return axes == found.band.loops.size() ? std::optional(found) : std::nullopt;
}

std::size_t loads_of(const Block& block, std::size_t buffer) {
  std::size_t count = 0;
  nests::for_each_load(block, [&](const Scalar& load) { count += load->id == buffer ? 1 : 0; });
  return count;
}

// Replaces the load of the buffer in `statement` by the expression that fills the buffer.
bool inline_into(LoopNest& nest, const Filling& from, Statement& statement) {
  if (!is_free(statement)) return false;
  const LoopBand band = band_of(statement);
  if (band.inner->size() != 1 || band.inner->front().kind != Statement::Kind::Store ||
      positions(band) == 0 || positions(band) > positions(from.band))
    return false;
  const std::size_t buffer = from.store->id;
  Scalar read;
  nests::for_each_load(*band.inner, [&](const Scalar& load) {
    if (load->id == buffer) read = load;
  });
  // The computation moves later: its operands must not change in between.
  if (loads_of(*from.band.inner, band.inner->front().id) > 0) return false;
  if (!read.is_defined() || read->bounds != Bounds::Inside || read->view != from.store->view)
    return false;
  Block body = *from.band.inner;
  // Both bands may use the same loop ids: rename the loops of the producer first.
  std::vector<std::pair<std::size_t, Scalar>> places;
  for (std::size_t k = 0; k < read->view.size(); ++k) {
    const Scalar& axis = from.store->indices[k];
    if (axis->kind != ScalarKind::Loop) continue;
    places.emplace_back(nest.new_loop(nest.loop_names[axis->id]), read->args[k]);
    nests::substitute_loop(body, axis->id, loop_scalar(places.back().first));
  }
  for (const auto& [loop, place] : places) nests::substitute_loop(body, loop, place);
  const Scalar value = nests::cast_scalar(body.back().value, nest.buffers[buffer].dtype);
  Block store = *band.inner;
  nests::ScalarRewriter([&](ScalarNode node) {
    if (node.kind == ScalarKind::Load && node.id == buffer) return value;
    return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
  }).apply(store);
  body.back() = std::move(store.front());
  const_cast<Block&>(*band.inner) = std::move(body);  // NOLINT: a part of `statement`
  return true;
}

}  // namespace

void inline_scratch(NestSequence::NestCall& part) {
  LoopNest& nest = part.nest;
  Block* block = &nest.body;
  while (block->size() == 1 && is_free(block->front())) block = &block->front().body;
  bool has_changed = false;
  for (std::size_t k = 0; k + 1 < block->size();) {
    const auto found = filling(nest, (*block)[k]);
    const bool is_single = found && loads_of(nest.body, found->store->id) == 1;
    if (is_single && inline_into(nest, *found, (*block)[k + 1])) {
      block->erase(block->begin() + static_cast<std::ptrdiff_t>(k));
      has_changed = true;
    } else {
      ++k;
    }
  }
  if (!has_changed) return;
  drop_unused_buffers(part);
  list_extents(nest);
}

}  // namespace tenon::codegen::cuda
