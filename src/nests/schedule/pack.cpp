#include "nests/schedule/pack.h"

#include "base/error.h"
#include "nests/affine.h"
#include "nests/contraction.h"
#include "nests/index_map.h"

#include <algorithm>

namespace tenon::nests {

std::optional<Packing> pack(LoopNest& nest, Block& block, std::size_t buffer,
                            const std::vector<PackedLoop>& loops, std::int64_t limit) {
  Scalar load;
  bool is_one = true;
  for_each_load(block, [&](const Scalar& found) {
    if (found->id != buffer) return;
    is_one &= !load.is_defined();
    load = found;
  });
  TENON_ASSERT(load.is_defined() && is_one, "what is packed is read in one place");
  if (!can_be_repacked(load)) return std::nullopt;
  Packing packing;
  packing.buffer = buffer;
  packing.source_dims = load->view;
  packing.limit = limit;
  packing.coordinates.assign(load->args.begin(),
                             load->args.begin() + static_cast<std::ptrdiff_t>(load->view.size()));
  for (const Scalar& coordinate : packing.coordinates) {
    const auto affine = affine_of(coordinate);
    if (!affine) return std::nullopt;
    for (const auto& [loop, step] : affine->steps) {
      if (std::ranges::find(loops, loop, &PackedLoop::id) == loops.end()) return std::nullopt;
    }
  }
  ScalarNode packed = load.node();
  packed.bounds = Bounds::Inside;
  packed.view.clear();
  packed.args.clear();
  for (const PackedLoop& loop : loops) {
    if (!loop.extent.is_constant()) return std::nullopt;
    packing.loops.push_back(loop.id);
    packing.extents.push_back(loop.extent.constant());
    packed.view.push_back(loop.extent);
    packed.args.push_back(loop.extent == Dim(1) ? integer_scalar(0) : loop_scalar(loop.id));
  }
  nest.buffers[buffer].dims = packed.view;
  const Scalar read(std::make_shared<const ScalarNode>(std::move(packed)));
  ScalarRewriter([&](ScalarNode node) {
    if (node.kind == ScalarKind::Load && node.id == buffer) return read;
    return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
  }).apply(block);
  return packing;
}

}  // namespace tenon::nests
