#pragma once

#include <cstddef>

namespace tenon {

/// How often any thread of the test program has taken memory with `new` so far.
std::size_t allocation_count();

/// From now on the `number`-th `new` of this thread fails, counted from 1, and none before or
/// behind it; none at all with 0. Gives whether the one that was to fail before has failed.
bool fail_allocation(std::size_t number);

}  // namespace tenon
