#pragma once

#include "ir/graph.h"

namespace tenon {

/// Makes the numbers that stand in for weights smaller where a sum's branch ends in a contraction:
/// sums of equals grow with every block of a residual network, which real ones are trained not to
/// do.
void damp_branches(Graph& graph);

}  // namespace tenon
