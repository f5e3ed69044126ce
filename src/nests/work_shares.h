#pragma once

#include "nests/loop_nest.h"

namespace tenon::nests {

/// Which share of a node's arithmetic each of its nests does: of the products, or where there are
/// none of what is stored.
std::vector<double> work_shares(const std::vector<const LoopNest*>& nests);

}  // namespace tenon::nests
