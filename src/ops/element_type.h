#pragma once

#include "ir/graph.h"

#include <optional>

namespace tenon {

/// The element type of a tensor, also of one whose rank only the run tells: what the ops that make
/// it would give for this rank or that. Nothing of what is no tensor, or where not even they say.
std::optional<DType> element_type(const Graph& graph, ValueId value);

}  // namespace tenon
