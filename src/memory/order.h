#pragma once

#include "memory/problem.h"

namespace tenon::memory {

/// Reorders the items to reduce the peak of live bytes, by the best of several local searches: each
/// item moves to the place with the least byte-time area, then items move around the peak until no
/// move helps or `order_bound_bytes` is reached. The result never needs more than the given order.
Problem reordered(const Problem& problem, bool in_place = true);

/// Returns distinct orders that are good starts for planning under a budget: `reordered` first,
/// then orders with a higher peak that may need less once values are evicted and recomputed.
std::vector<Problem> candidate_orders(const Problem& problem, bool in_place = true);

/// Returns the peak of live bytes in the given order.
std::uint64_t peak_bytes(const Problem& problem, bool in_place = true);

/// Lower bound on the peak of any order without recomputation: while an item runs, a value is live
/// if the item or one of its dependencies makes it, and the item or one of its dependents reads it.
std::uint64_t order_bound_bytes(const Problem& problem, bool in_place = true);

}  // namespace tenon::memory
