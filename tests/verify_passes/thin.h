#pragma once

#include "ir/graph.h"

namespace tenon::testing {

/// Returns the network with thinner layers: divides extents of weights above 16 that are multiples
/// of `factor`, and matching extents in attributes, and in inputs whose extents are those of
/// layers. Weights must be seeded or splat.
Graph thinned(const Graph& graph, std::int64_t factor, bool thins_inputs = false);

}  // namespace tenon::testing
