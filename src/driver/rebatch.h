#pragma once

#include "ir/graph.h"

#include <cstdint>
#include <map>
#include <string>

namespace tenon {

/// The model for another batch (0: its own): the first axis of its inputs, where they agree on it,
/// a symbol or a number. Shapes that the model states itself (`reshape`) follow where their first
/// extent is the old batch. Throws Error (Usage) where there is no such axis, and Error with the
/// node's words where the graph does not allow it.
Graph rebatched(Graph graph, std::int64_t batch);

/// The model for inputs of these shapes, where it states other numbers: the graph is inferred anew.
/// Where the first extent changes, inputs that are not named follow if theirs was the same. Symbols
/// stay. Throws as `rebatched` does; shapes of no input of the model are left to others.
Graph reshaped(Graph graph, const std::map<std::string, Shape>& shapes);

/// The model for a batch (0: its own) and inputs of these shapes, for good: symbols in them become
/// numbers too. Throws as the others do, and for shapes of no input and of the wrong rank.
Graph with_fixed_shapes(Graph graph, std::int64_t batch,
                        const std::map<std::string, Shape>& shapes);

}  // namespace tenon
