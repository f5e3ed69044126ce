#pragma once

#include <cstddef>

namespace tenon {

/// How often any thread of the test program has taken memory with `new` so far.
std::size_t allocation_count();

}  // namespace tenon
