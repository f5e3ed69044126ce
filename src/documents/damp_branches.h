#pragma once

#include "ir/graph.h"

namespace tenon::documents {

/// Scales down the seeded weights of contractions at the end of residual branches. Otherwise
/// activations would grow with every block of a residual network, which trained weights prevent.
void damp_branches(Graph& graph);

}  // namespace tenon::documents
