#pragma once

#include "documents/native_node.h"
#include "documents/relay/ast.h"
#include "ir/graph.h"

namespace tenon::documents::relay {

/// Exports the graph as a Relay program with type comments. Throws Error of kind Unsupported that
/// lists every value without a tensor type in Relay.
RelayModule export_graph(const Graph& graph, const NativeNodes& own = {});

/// The same with the elements of constants in a metadata section.
RelayModule export_graph_with_data(const Graph& graph, const NativeNodes& own = {});

}  // namespace tenon::documents::relay
