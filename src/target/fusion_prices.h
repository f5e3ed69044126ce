#pragma once

#include "nests/fusion_cost.h"
#include "target/facts.h"

namespace tenon {

/// What tile-and-fuse counts with on this target.
nests::FusionPrices fusion_prices(const TargetFacts& facts);

}  // namespace tenon
