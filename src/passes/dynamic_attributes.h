#pragma once

#include "passes/reinference.h"

namespace tenon::passes {

/// Turns operands that stand for attributes (dynamic attributes) into attributes where their
/// elements are known as numbers or symbols, and removes the operands. Returns the number of
/// attributes set.
std::size_t resolve_dynamic_attributes(Graph& graph);
/// The same for one node, during a walk over the graph that has reached it.
std::size_t resolve_dynamic_attributes(Graph& graph, NodeId id, Reinference& types);

}  // namespace tenon::passes
