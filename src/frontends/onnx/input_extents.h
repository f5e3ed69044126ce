#pragma once

#include "ir/graph.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::frontends::onnx {

/// Imports a model with other input extents than declared, by position; nullopt keeps an input's
/// own. Ignores the model's statements about other values' extents, which are inferred.
Graph import_with_extents(const std::string& path, const std::vector<std::optional<Dims>>& extents);

}  // namespace tenon::frontends::onnx
