#pragma once

#include "ir/graph.h"

namespace tenon {

/// Where the elements of an operand that stands in for an attribute are known, as numbers or as the
/// graph's symbols, the attribute takes them and the operand goes. Gives how many did.
std::size_t settle_dynamic_attributes(Graph& graph);

/// Infers the nodes' types again and, where that made them more precise, those of their readers.
void infer_again(Graph& graph, const std::vector<NodeId>& nodes);

}  // namespace tenon
