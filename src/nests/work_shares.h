#pragma once

#include "nests/loop_nest.h"

namespace tenon::nests {

/// Returns each nest's share of a node's arithmetic, by multiply-accumulates, or by stores if there
/// are none.
std::vector<double> work_shares(const std::vector<const LoopNest*>& nests);

}  // namespace tenon::nests
