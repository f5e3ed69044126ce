#pragma once

#include "nests/fusion_cost.h"
#include "nests/nest_builder.h"

#include <optional>
#include <vector>

namespace tenon::nests {

/// Choice of the fused outer loops: those of the last nest up to `depth`, with the loop at `cut`
/// tiled by `block`. The last tile may be smaller.
struct FusionTile {
  std::size_t depth = 0, cut = 0;
  std::int64_t block = 1;
};
struct FusedNest {
  NestSequence::NestCall part;
  FusionCost cost;
};

/// Fuses the parts of a sequence from `first` to `last` into one nest; no value if they cannot be
/// fused this way.
std::optional<FusedNest> fused_nest(const NestSequence& sequence, std::size_t first,
                                    std::size_t last, const FusionTile& cut,
                                    const FusionPrices& prices);

/// Returns the extents of the independent loops around a block, outermost first: those that can be
/// tiled.
std::vector<Dim> outer_extents(const Block& block);
/// Returns whether the block does more than move elements.
bool computes(const Block& block);

}  // namespace tenon::nests
