#pragma once

#include "ir/graph.h"

#include <cstdint>

namespace tenon {

/// The model for another batch: the first axis of its inputs, where they agree on it, a symbol or a
/// number. Shapes that the model states itself (`reshape`) follow where their first extent is the
/// old batch. Throws Error (Usage) where there is no such axis, and Error with the node's words
/// where the graph does not allow it.
Graph rebatched(Graph graph, std::int64_t batch);

}  // namespace tenon
