#pragma once

#include "ir/graph.h"

#include <cstdint>

namespace tenon::testing {

/// A random graph in f64 whose ops all have gradients: arithmetic, activations, products,
/// convolutions, pooling, norms, reductions, movement. The same seed gives the same graph.
Graph random_differentiable_graph(std::uint64_t seed);

/// Holds the gradients of `count` such graphs to finite differences, and those of every tenth, or
/// of all, compiled, to the reference. Prints what fails, then `N passed, N failed`; gives an exit
/// code.
int check_random_gradients(std::uint64_t first_seed, std::uint64_t count, bool compiles_all);

}  // namespace tenon::testing
