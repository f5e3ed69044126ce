#pragma once

#include "nests/fusion_cost.h"
#include "target/facts.h"

namespace tenon::inline target {

/// Returns this target's costs for tile-and-fuse.
nests::FusionPrices fusion_prices(const TargetFacts& facts);

}  // namespace tenon::inline target
