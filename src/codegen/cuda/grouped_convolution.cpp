#include "codegen/cuda/grouped_convolution.h"

#include "codegen/cuda/convolution.h"
#include "codegen/cuda/gemm.h"
#include "codegen/cuda/library_conditions.h"
#include "codegen/cuda/library_match.h"
#include "nests/affine.h"
#include "nests/index_map.h"
#include "nests/schedule/loops.h"
#include "nests/stride.h"

#include <utility>

namespace tenon::codegen::cuda {
namespace {

// Removes the group loop from indices that it partitions evenly; the view keeps one group.
void leave_one(const Statement& groups, std::vector<Scalar>& at, Dims& view) {
  for (std::size_t axis = 0; axis < view.size(); ++axis) {
    auto affine = nests::affine_of(at[axis]);
    if (!affine) continue;
    const auto step = affine->steps.find(groups.id);
    if (step == affine->steps.end() || !(view[axis] == Dim(step->second) * groups.extent)) continue;
    view[axis] = step->second;
    affine->steps.erase(step);
    at[axis] = nests::scalar_of(*affine);
  }
}

}  // namespace

std::optional<ExtractedGroup> extract_group(const LoopNest& nest) {
  const auto contraction = find_tile_contraction(nest);
  if (!contraction) return std::nullopt;
  ExtractedGroup one;
  for (const Statement* loop : contraction->parallel) {
    if (!nests::depends_on(contraction->a, loop->id) ||
        !nests::depends_on(contraction->b, loop->id))
      continue;
    if (one.groups != nullptr) return std::nullopt;
    one.groups = loop;
  }
  if (one.groups == nullptr || !one.groups->extent.is_constant() || one.groups->limit.is_defined())
    return std::nullopt;
  one.nest = nest;
  nests::ScalarRewriter rewriting([&](ScalarNode node) {
    if (node.kind == ScalarKind::Load) leave_one(*one.groups, node.args, node.view);
    return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
  });
  rewriting.apply(one.nest.body);
  nests::for_each_statement(one.nest.body, [&](Statement& statement) {
    if (statement.kind == Statement::Kind::Store)
      leave_one(*one.groups, statement.indices, statement.view);
  });
  Block inner = std::move(nests::find_loop(one.nest.body, one.groups->id)->body);
  *nests::block_of(one.nest.body, one.groups->id) = std::move(inner);
  return one;
}

std::optional<nests::Packing> grouped_packing(const LoopNest& nest,
                                              const std::vector<bool>& is_constant) {
  const auto one = extract_group(nest);
  if (!one) return std::nullopt;
  const LoopNest plain = without_epilogue(one->nest);
  const LibraryMatch match = match_convolution(plain, *find_tile_contraction(plain), is_constant,
                                               ChannelPadding::Unpadded, Numbers::Any);
  if (!match.refusal.empty() || !match.packing) return std::nullopt;
  const auto contraction = find_tile_contraction(nest);
  nests::Packing packing = *match.packing;
  const Scalar& weights = contraction->a->id == packing.buffer ? contraction->a : contraction->b;
  packing.source_dims = weights->view;
  packing.coordinates.assign(
      weights->args.begin(),
      weights->args.begin() + static_cast<std::ptrdiff_t>(weights->view.size()));
  packing.loops.insert(packing.loops.begin(), one->groups->id);
  packing.extents.insert(packing.extents.begin(), one->groups->extent.constant());
  packing.limit = packing.extents.front() * packing.extents.back();
  return packing;
}

}  // namespace tenon::codegen::cuda
