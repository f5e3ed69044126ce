#pragma once

#include "ir/graph.h"

#include <optional>

namespace tenon::inline ops {

/// Returns the element type of a tensor, also of one with an unknown rank: runs the inference of
/// its producers with trial ranks. Returns nullopt for other values and if the trials fail.
std::optional<DType> element_type(const Graph& graph, ValueId value);

}  // namespace tenon::inline ops
