#pragma once

#include "ir/graph.h"

#include <cstdint>

namespace tenon::testing {

/// Returns a random graph in f64 whose ops all have gradients: arithmetic, activations, products,
/// convolutions, pooling, norms, reductions, movement. Determined by the seed.
Graph random_differentiable_graph(std::uint64_t seed);

/// Compares the gradients of `count` such graphs with finite differences, and those of every tenth
/// (or of every) compiled graph with the reference. Prints failures, then `N passed, N failed`;
/// returns an exit code.
int check_random_gradients(std::uint64_t first_seed, std::uint64_t count, bool compiles_all);

}  // namespace tenon::testing
