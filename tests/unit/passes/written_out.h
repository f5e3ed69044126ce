#pragma once

#include "ir/graph.h"

namespace tenon::testing {

/// The graph with layer norms, GELUs and softmaxes written out in primitive ops and with the
/// extents of reshapes computed from shapes, as PyTorch exports them.
Graph written_out(const Graph& graph);

/// How many nodes have that op.
std::size_t count_of(const Graph& graph, std::string_view op);

}  // namespace tenon::testing
