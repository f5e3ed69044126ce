#pragma once

#include "nests/fusion_cost.h"
#include "nests/nest_builder.h"

namespace tenon::nests {

/// Makes one nest of nests of which each reads what the one before it made, where some outer loops
/// of the last can stand around all of them: each pass of those computes, stage by stage in small
/// buffers of the thread, only what it needs itself. The last of the outer loops is cut into
/// blocks, so that weights are read once for several positions. Where stages reach over a block's
/// edge they compute a little twice; nests stay apart where that, or reading weights again, costs
/// more than writing the values between them to memory and reading them back.
void tile_and_fuse(NestSequence& sequence, const FusionPrices& prices);

}  // namespace tenon::nests
