#pragma once

#include "memory/problem.h"

namespace tenon::memory {

/// The problem with its items in an order in which less is alive at once, of several that are
/// tried: each where it holds the fewest bytes for the shortest time, then moved around the moment
/// that needs most, until no move helps or `order_bound_bytes` is reached. Never one that needs
/// more than the given order.
Problem reordered(const Problem& problem, bool in_place = true);

/// Orders in which a plan under a budget may be looked for, all different: `reordered` first, then
/// others that need more as they are, but may need less once values are dropped and made again.
std::vector<Problem> promising_orders(const Problem& problem, bool in_place = true);

/// Most that is alive at once, the items running as they stand.
std::uint64_t peak_bytes(const Problem& problem, bool in_place = true);

/// No order of the items, each run once, has less alive at once: while an item runs, everything is
/// alive that something before it makes and it, or something after it, reads.
std::uint64_t order_bound_bytes(const Problem& problem, bool in_place = true);

}  // namespace tenon::memory
