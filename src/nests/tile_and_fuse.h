#pragma once

#include "nests/fusion_cost.h"
#include "nests/nest_builder.h"

namespace tenon::nests {

/// Fuses a chain of producer-consumer nests at common outer loops of the last nest (tile-and-fuse).
///
/// Each iteration of a fused loop computes every stage into thread-local scratch, sized by the
/// region that the next stage reads. The innermost fused loop is tiled so that weights are reused
/// across positions. Overlapping tiles recompute halos. Nests stay separate where recomputation or
/// rereading weights would cost more than a round trip through memory.
void tile_and_fuse(NestSequence& sequence, const FusionPrices& prices);

}  // namespace tenon::nests
