#include "codegen/cuda/loop_packing.h"

#include "codegen/cuda/library_conditions.h"
#include "codegen/cuda/loop_stride.h"
#include "nests/affine.h"
#include "nests/index_map.h"

#include <algorithm>

namespace tenon::codegen::cuda {
namespace {

// Returns the parallel loop along which the result is contiguous.
const Statement* innermost_loop(const nests::Contraction& contraction, const Statement& store) {
  for (const Statement* loop : contraction.parallel) {
    const auto step = distance(store, loop->id);
    if (step && *step == Dim(1) && !(loop->extent == Dim(1))) return loop;
  }
  return nullptr;
}

// True if the reduction reads both factors contiguously: a group of threads shares it.
bool runs_along_both(const nests::Contraction& contraction) {
  return std::ranges::any_of(contraction.reduction, [&](const Statement* loop) {
    return nests::stride_along(contraction.a, loop->id) == nests::Stride::Unit &&
           nests::stride_along(contraction.b, loop->id) == nests::Stride::Unit;
  });
}

// True if the nest reads the buffer in one place, at coordinates that are affine in its loops.
bool can_be_packed(const LoopNest& nest, const Scalar& weights) {
  std::size_t loads = 0;
  nests::for_each_load(nest.body, [&](const Scalar& load) { loads += load->id == weights->id; });
  return loads == 1 && weights->bounds == Bounds::Inside &&
         std::ranges::all_of(weights->view, [](const Dim& dim) { return dim.is_constant(); }) &&
         std::ranges::all_of(weights->args,
                             [](const Scalar& at) { return nests::affine_of(at).has_value(); });
}

}  // namespace

std::optional<nests::Packing> loop_packing(const LoopNest& nest,
                                           const nests::Contraction& contraction,
                                           const std::vector<bool>& is_constant) {
  const std::optional<Statement> store = only_store(contraction);
  const Statement* innermost = store ? innermost_loop(contraction, *store) : nullptr;
  if (innermost == nullptr || runs_along_both(contraction)) return std::nullopt;
  for (const Scalar& weights : {contraction.a, contraction.b}) {
    if (!is_constant[weights->id] || !can_be_packed(nest, weights)) continue;
    if (nests::stride_along(weights, innermost->id) != nests::Stride::Other) continue;
    nests::Packing packing;
    packing.buffer = weights->id;
    packing.source_dims = weights->view;
    packing.coordinates.assign(
        weights->args.begin(),
        weights->args.begin() + static_cast<std::ptrdiff_t>(weights->view.size()));
    std::vector<const Statement*> loops = contraction.parallel;
    loops.insert(loops.end(), contraction.reduction.begin(), contraction.reduction.end());
    std::erase_if(loops, [&](const Statement* loop) {
      return loop == innermost || !nests::depends_on(weights, loop->id);
    });
    loops.push_back(innermost);
    if (loops.size() < 2 || std::ranges::any_of(loops, [](const Statement* loop) {
          return !loop->extent.is_constant();
        }))
      continue;
    for (const Statement* loop : loops) {
      packing.loops.push_back(loop->id);
      packing.extents.push_back(loop->extent.constant());
    }
    packing.limit = packing.extents.front() * packing.extents.back();
    return packing;
  }
  return std::nullopt;
}

}  // namespace tenon::codegen::cuda
