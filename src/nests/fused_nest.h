#pragma once

#include "nests/fusion_cost.h"
#include "nests/nest_builder.h"

#include <optional>
#include <vector>

namespace tenon::nests {

/// Which loops of the last nest stand around all of them: those up to `depth`, that at `cut` in
/// blocks of so many positions and inside the others. The last block may be smaller.
struct FusionTile {
  std::size_t depth = 0, cut = 0;
  std::int64_t block = 1;
};
struct FusedNest {
  NestSequence::Part part;
  FusionCost cost;
};

/// The parts of a sequence from `first` to `last` as one; nothing where they do not fit together
/// so.
std::optional<FusedNest> fused_nest(const NestSequence& sequence, std::size_t first,
                                    std::size_t last, const FusionTile& cut,
                                    const FusionPrices& prices);

/// The extents of the independent loops around all of a block, outermost first: those that can be
/// cut.
std::vector<Dim> outer_extents(const Block& block);
/// Whether the block does more than move elements.
bool computes(const Block& block);

}  // namespace tenon::nests
