#pragma once

#include "ir/graph.h"

namespace tenon::testing {

/// The same network with thinner layers: extents of weights above 16 that `factor` divides are
/// divided by it, in attributes too, and in inputs if they hold what layers give. Weights must be
/// seeded or splat.
Graph thinned(const Graph& graph, std::int64_t factor, bool thins_inputs = false);

}  // namespace tenon::testing
