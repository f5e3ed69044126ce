#include "codegen/cpu/run_time_packing.h"

#include "base/error.h"
#include "codegen/cpu/tile_roles.h"
#include "expr/access.h"
#include "nests/contraction.h"
#include "nests/index_map.h"
#include "nests/operand_copy.h"
#include "nests/schedule/bind.h"
#include "nests/schedule/reorder.h"
#include "nests/schedule/split.h"
#include "nests/stride.h"

#include <algorithm>

namespace tenon::codegen::cpu {
namespace {

using nests::Packing;
using nests::Stride;

// Returns whether rows of `b` lie pages apart along a long reduction, and enough register tiles
// read them.
bool is_worth_packing(const nests::Contraction& contraction, const Scalar& b) {
  constexpr std::int64_t kPageElements = 1024, kLongReduction = 64;
  constexpr double kManyRows = 64, kLargeOperand = 1 << 20;
  if (b->bounds != Bounds::Inside || b->dtype != DType::F32 || b->view.size() < 2) return false;
  double rows = 1;
  bool has_columns = false;
  for (const Statement* loop : contraction.parallel) {
    if (!loop->extent.is_constant() || loop->limit.is_defined()) return false;
    const Stride stride = stride_along(b, loop->id);
    if (stride == Stride::Zero) rows *= static_cast<double>(loop->extent.constant());
    has_columns |= stride == Stride::Unit && loop->extent == b->view.back() &&
                   suits_columns(contraction, loop->id);
  }
  const Dim& row = b->view.back();
  const bool is_apart = row.is_constant() && row.constant() % kPageElements == 0;
  return has_columns && is_apart && rows >= kManyRows &&
         size_hint(product(b->view)) >= kLargeOperand &&
         std::any_of(contraction.reduction.begin(), contraction.reduction.end(),
                     [&](const Statement* loop) {
                       return loop->extent.is_constant() &&
                              loop->extent.constant() >= kLongReduction &&
                              nests::growth(b->args[b->view.size() - 2], loop->id) == 1;
                     });
}

// Tiles narrower than a few cache lines are written several at a time, so that every line read is
// fully used.
void read_lines(LoopNest& nest, const Packing& packing) {
  constexpr std::int64_t kSideBySide = 64, kMostStreams = 8;
  const std::int64_t width = packing.extents.back(), tiles = packing.extents.front();
  const std::int64_t streams = std::min(kSideBySide / width, kMostStreams);
  if (streams < 2 || tiles % streams != 0 || tiles == streams || packing.loops.size() < 3) return;
  const nests::SplitLoop blocks = split(nest, nest.body, packing.loops.front(), streams);
  std::vector<std::size_t> order{blocks.outer};
  order.insert(order.end(), packing.loops.begin() + 1, packing.loops.end() - 1);
  order.push_back(blocks.inner);
  order.push_back(packing.loops.back());
  reorder(nest.body, order);
  bind_loop(nest.body, blocks.inner, LoopKind::Serial);
  bind_loop(nest.body, blocks.outer, LoopKind::Parallel);
}

NestSequence::NestCall packing_nest(const NestSequence::NestCall& part, const Packing& packing,
                                    std::size_t source, std::size_t made, const Dims& dims) {
  NestSequence::NestCall copy;
  copy.is_scheduled = true;
  copy.buffers = {source, made};
  LoopNest& nest = copy.nest;
  nest.name = "pack";
  nest.loop_names = part.nest.loop_names;
  nest.extents = part.nest.extents;
  nest.buffers = {{"x", DType::F32, packing.source_dims, StorageClass::Operand},
                  {"p", DType::F32, dims, StorageClass::Result}};
  ScalarNode load;
  load.kind = ScalarKind::Load;
  load.dtype = DType::F32;
  load.view = packing.source_dims;
  load.args = packing.coordinates;
  Statement store;
  store.kind = Statement::Kind::Store;
  store.id = 1;
  store.view = dims;
  for (const std::size_t loop : packing.loops) store.indices.push_back(loop_scalar(loop));
  const Scalar body_load(std::make_shared<const ScalarNode>(std::move(load)));
  store.value = body_load;
  Block body{std::move(store)};
  for (std::size_t k = packing.loops.size(); k-- > 0;) {
    Statement loop;
    loop.id = packing.loops[k];
    loop.extent = packing.extents[k];
    loop.is_independent = true;
    const bool is_last = k + 1 == packing.loops.size();
    loop.loop = k == 0 ? LoopKind::Parallel : is_last ? LoopKind::Vector : LoopKind::Serial;
    loop.width = is_last ? static_cast<unsigned>(packing.extents[k]) : 1;
    loop.body = std::move(body);
    body = {std::move(loop)};
  }
  if (packing.loops.size() > 2) {
    constexpr std::int64_t kTurns = 12;
    const auto distance = distance_along(body_load, packing.loops[packing.loops.size() - 2]);
    nest.buffers[0].ahead = kTurns * distance.value_or(0);
  }
  nest.body = std::move(body);
  read_lines(nest, packing);
  list_extents(nest);
  return copy;
}

}  // namespace

void add_profitable_packings(std::vector<bool>& may_pack, const NestSequence::NestCall& part,
                             const TileShape& shape, const TargetFacts& target) {
  const std::optional<nests::Contraction> contraction = nests::find_contraction(part.nest);
  if (!contraction) return;
  const std::optional<std::size_t> rows = rows_to_pack(part.nest, may_pack, shape, target);
  std::vector<std::size_t> worth;
  for (const Scalar* factor : {&contraction->a, &contraction->b}) {
    if ((*factor)->id == rows || is_worth_packing(*contraction, *factor))
      worth.push_back((*factor)->id);
  }
  for (const std::size_t id : worth) {
    if (part.nest.buffers[id].storage != StorageClass::Operand) continue;
    std::size_t loads = 0;
    for_each_load(part.nest.body, [&](const Scalar& load) { loads += load->id == id ? 1 : 0; });
    if (loads == 1) may_pack[id] = true;
  }
}

std::vector<NestSequence::NestCall> pack_at_run_time(NestSequence& sequence,
                                                     NestSequence::NestCall& part,
                                                     std::vector<Packing>& packings,
                                                     const std::vector<bool>& is_constant) {
  std::vector<NestSequence::NestCall> made;
  std::vector<Packing> ahead;
  for (Packing& packing : packings) {
    const std::size_t source = nests::buffer_of(part, packing.buffer);
    if (source < is_constant.size() && is_constant[source]) {
      ahead.push_back(std::move(packing));
      continue;
    }
    TENON_ASSERT(packing.limit % packing.extents.back() == 0,
                 "columns that are packed in the run fill vectors");
    const Dims dims(packing.extents.begin(), packing.extents.end());
    const std::size_t buffer = sequence.buffers.size();
    sequence.buffers.push_back({NestSequence::BufferRole::Temporary, 0, DType::F32, dims});
    made.push_back(packing_nest(part, packing, source, buffer, dims));
    std::size_t given = 0;
    for (std::size_t k = 0; k < packing.buffer; ++k)
      given += part.nest.buffers[k].storage != StorageClass::Scratch;
    part.buffers[given] = buffer;
  }
  packings = std::move(ahead);
  return made;
}

}  // namespace tenon::codegen::cpu
