#pragma once

#include "nests/loop_nest.h"

namespace tenon::nests {

/// Which share of a node's arithmetic each of its nests does: of the products, or where there are none of
/// what is stored.
std::vector<double> work_shares(const std::vector<const LoopNest*>& nests);

/// Whether sharing the nest out among threads costs more than it gains. No where symbols decide.
bool is_little_work(const LoopNest& nest);

}  // namespace tenon::nests
