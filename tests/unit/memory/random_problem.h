#pragma once

#include "memory/problem.h"

namespace tenon::testing {

/// A training step of a network with skips, of all sizes and costs; the same for the same seed.
memory::Problem random_problem(std::uint64_t seed);

}  // namespace tenon::testing
