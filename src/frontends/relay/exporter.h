#pragma once

#include "frontends/own_node.h"
#include "frontends/relay/ast.h"
#include "ir/graph.h"

namespace tenon::relay {

/// Exports the graph as a Relay program with type comments. Throws Error of kind Unsupported that
/// lists every value without a tensor type in Relay.
Module export_graph(const Graph& graph, const OwnNodes& own = {});

/// The same with the elements of constants in a metadata section.
Module export_graph_with_data(const Graph& graph, const OwnNodes& own = {});

}  // namespace tenon::relay
