// Loop peeling and bounds-check elimination for windows that overlap the edges of an image, without
// a padded copy.
#include "codegen/cpu/kernel_emitter.h"
#include "nests/affine.h"
#include "nests/index_map.h"
#include "nests/loop_extents.h"

#include <algorithm>

namespace tenon::codegen::cpu {

namespace {

// Loads with a fill value outside of their buffer.
std::vector<Scalar> filled_loads(const Block& block) {
  std::vector<Scalar> found;
  nests::for_each_load(block, [&](const Scalar& load) {
    const bool is_filled =
        load->bounds == Bounds::Fill && load->args.back()->kind == ScalarKind::Real;
    if (is_filled) found.push_back(load);
  });
  return found;
}

}  // namespace

// Range of a coordinate at the current position: constant loops at their value, interior row tiles
// at their range, other loops over all positions.
std::optional<Range> KernelEmitter::range_here(const Scalar& index) const {
  const auto affine = nests::affine_of(index);
  if (!affine) return std::nullopt;
  Range range{affine->start, affine->start};
  for (const auto& [loop, step] : affine->steps) {
    Range at;
    const auto* number = loops_[loop].value == nullptr || !loops_[loop].is_uniform()
                             ? nullptr
                             : llvm::dyn_cast<llvm::ConstantInt>(loops_[loop].value);
    if (number != nullptr) {
      at = {number->getSExtValue(), number->getSExtValue()};
    } else if (loop == jammed_ && rows_here_) {
      at = *rows_here_;
    } else if (const auto extent = loop_extents_.find(loop); extent != loop_extents_.end()) {
      at = {0, extent->second - 1};
    } else {
      return std::nullopt;
    }
    range.lo += step * (step > 0 ? at.lo : at.hi);
    range.hi += step * (step > 0 ? at.hi : at.lo);
  }
  return range;
}

KernelEmitter::BoundaryTiles KernelEmitter::boundary_tiles(const Statement& rows, std::int64_t from,
                                                           std::int64_t to, unsigned size) const {
  constexpr std::int64_t kMost = 2;  // Per end; more would bloat the code.
  std::vector<std::pair<nests::Affine, std::int64_t>> across;
  for (const Scalar& load : filled_loads(rows.body)) {
    for (std::size_t axis = 0; axis < load->view.size(); ++axis) {
      const auto affine = nests::affine_of(load->args[axis]);
      if (affine && affine->steps.contains(rows.id) && load->view[axis].is_constant())
        across.emplace_back(*affine, load->view[axis].constant());
    }
  }
  const auto is_inside = [&](std::int64_t first) {
    return std::ranges::all_of(across, [&](const auto& edge) {
      std::int64_t lo = edge.first.start, hi = lo;
      for (const auto& [loop, step] : edge.first.steps) {
        const auto extent = loop_extents_.find(loop);
        if (loop != rows.id && extent == loop_extents_.end()) return false;
        const std::int64_t least = loop == rows.id ? first : 0,
                           most = loop == rows.id ? first + size - 1 : extent->second - 1;
        lo += step * (step > 0 ? least : most);
        hi += step * (step > 0 ? most : least);
      }
      return lo >= 0 && hi < edge.second;
    });
  };
  const std::int64_t tiles = (to - from) / size;
  BoundaryTiles edges;
  while (edges.first < tiles && edges.first <= kMost && !is_inside(from + edges.first * size))
    ++edges.first;
  while (edges.first + edges.last < tiles && edges.last <= kMost &&
         !is_inside(to - (edges.last + 1) * size))
    ++edges.last;
  if (edges.first > kMost || edges.last > kMost) return {};
  for (std::int64_t tile = edges.first; tile < tiles - edges.last; ++tile) {
    if (!is_inside(from + tile * size)) return {};
  }
  return edges;
}

// Window loops along the rows: unrolling them decides statically which rows of a tile overlap the
// edge.
bool KernelEmitter::is_along_boundary(const Statement& loop, std::size_t rows) const {
  constexpr std::int64_t kMost = 8;
  if (!loop.extent.is_constant() || loop.extent.constant() > kMost || loop.limit.is_defined())
    return false;
  if (loop.loop != LoopKind::Serial || panel_) return false;
  return std::ranges::any_of(filled_loads(loop.body), [&](const Scalar& load) {
    return std::ranges::any_of(load->args, [&](const Scalar& index) {
      const auto affine = nests::affine_of(index);
      return affine && affine->steps.contains(loop.id) && affine->steps.contains(rows);
    });
  });
}

// Returns an axis on which all rows of a tile, and all inner loops, read the same coordinate.
std::optional<KernelEmitter::BoundaryAxis> KernelEmitter::boundary_across(const Statement& loop,
                                                                          std::size_t rows) const {
  const std::vector<Scalar> loads = filled_loads(loop.body);
  if (loads.size() != 1) return std::nullopt;
  const std::map<std::size_t, Dim> inner = nests::loop_extents(loop.body);
  for (std::size_t axis = 0; axis < loads.front()->view.size(); ++axis) {
    const Scalar& index = loads.front()->args[axis];
    const auto affine = nests::affine_of(index);
    if (!affine || !affine->steps.contains(loop.id) || affine->steps.contains(rows)) continue;
    const bool is_one = std::ranges::none_of(
        affine->steps, [&](const auto& step) { return inner.contains(step.first); });
    if (is_one && !is_surely_inside(index, loads.front()->view[axis]))
      return BoundaryAxis{index, loads.front()->view[axis]};
  }
  return std::nullopt;
}

void KernelEmitter::emit_decided(const BoundaryAxis& edge, const std::function<void()>& emit_body) {
  // One unsigned comparison also rejects negative coordinates.
  llvm::Value* is_inside = ir_.CreateICmpULT(emit(edge.index).value, extent(edge.extent));
  llvm::BasicBlock* inside = llvm::BasicBlock::Create(context_, "inside", function_);
  llvm::BasicBlock* outside = llvm::BasicBlock::Create(context_, "outside", function_);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context_, "after", function_);
  ir_.CreateCondBr(is_inside, inside, outside);
  for (const bool is_here_inside : {true, false}) {
    ir_.SetInsertPoint(is_here_inside ? inside : outside);
    const Scope scope(*this);
    decided_.push_back({&edge.index.node(), is_here_inside});
    emit_body();
    decided_.pop_back();
    ir_.CreateBr(after);
  }
  ir_.SetInsertPoint(after);
}

}  // namespace tenon::codegen::cpu
