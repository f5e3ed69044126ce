#pragma once

#include "memory/problem.h"

namespace tenon::testing {

/// A random training step of a network with skip connections, with varied sizes and costs;
/// determined by the seed.
memory::Problem random_problem(std::uint64_t seed);

}  // namespace tenon::testing
