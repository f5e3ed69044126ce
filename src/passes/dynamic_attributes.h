#pragma once

#include "passes/reinference.h"

namespace tenon {

/// Where the elements of an operand that stands in for an attribute are known, as numbers or as the
/// graph's symbols, the attribute takes them and the operand goes. Gives how many did.
std::size_t settle_dynamic_attributes(Graph& graph);
/// The same for one node, in a walk over all of them that has come to it.
std::size_t settle_dynamic_attributes(Graph& graph, NodeId id, Reinference& types);

}  // namespace tenon
