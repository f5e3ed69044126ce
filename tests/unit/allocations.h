#pragma once

#include <cstddef>

namespace tenon {

/// Number of allocations with `new` by all threads of the test program so far.
std::size_t allocation_count();

/// Makes the `number`-th following `new` of this thread fail, counted from 1; 0 disarms. Returns
/// whether the previously armed failure has happened.
bool fail_allocation(std::size_t number);

}  // namespace tenon
