#pragma once

#include "ir/graph.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::onnx {

/// Imports a model with other extents of its inputs than it declares, by position; an input without
/// new ones stays as it is. What the model says of the extents of other values is left aside: it
/// follows from the inputs.
Graph import_with_extents(const std::string& path, const std::vector<std::optional<Dims>>& extents);

}  // namespace tenon::onnx
