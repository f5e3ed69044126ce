#pragma once

#include "ir/graph.h"

namespace tenon::testing {

/// The graph with layer norms, GELUs and softmaxes decomposed into primitive ops and with the
/// extents of reshapes computed from shapes, as PyTorch exports them.
Graph written_out(const Graph& graph);

/// Number of nodes with that op.
std::size_t count_of(const Graph& graph, std::string_view op);

}  // namespace tenon::testing
