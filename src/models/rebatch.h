#pragma once

#include "ir/graph.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace tenon::models {

/// Returns the batch: the first extent of the first input that has an axis, or the second one if a
/// recurrent layer iterates over the first.
std::optional<Dim> batch_of(const Graph& graph);

/// Returns the axis of that extent in the inputs.
std::size_t batch_axis(const Graph& graph);

/// Returns the model with another batch (0: unchanged): replaces that extent of its inputs, a
/// symbol or a number that they share; `BatchInference` lists what follows. Throws Error (Usage)
/// without such an axis, and Error with the node's message if the graph does not support it.
Graph rebatched(Graph graph, std::int64_t batch);

/// Returns the model for inputs of these shapes, with types inferred again. If a first extent
/// changes, other inputs with the same first extent follow. Symbols stay. Throws like `rebatched`;
/// ignores shapes of unknown inputs, which are checked elsewhere.
Graph reshaped(Graph graph, const std::map<std::string, Shape>& shapes);

/// Returns the model with a fixed batch (0: unchanged) and these input shapes: binds symbols to
/// numbers too. Throws like the others, and for unknown inputs and wrong ranks.
Graph with_fixed_shapes(Graph graph, std::int64_t batch,
                        const std::map<std::string, Shape>& shapes);

}  // namespace tenon::models
