#pragma once

#include "frontends/relay/ast.h"
#include "ir/graph.h"

namespace tenon::relay {

/// The graph as a Relay program with types on all that has one. Throws Error of kind Unsupported
/// that lists every node Relay has no words for.
Module export_graph(const Graph& graph);

/// The same with the elements of constants in a metadata section.
Module export_graph_with_data(const Graph& graph);

}  // namespace tenon::relay
