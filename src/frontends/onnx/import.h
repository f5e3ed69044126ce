#pragma once

#include "ir/graph.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tenon::frontends::onnx {

/// Reads a model into a verified graph. Weights are not copied; external data is mapped. Throws
/// Error for an invalid model, and one Error (Unsupported) that lists everything that Tenon cannot
/// import. `warnings` receives deviations from the standard that do not affect the result.
Graph import_onnx(const std::string& path, std::vector<std::string>* warnings = nullptr);

/// Reads a model in memory. `folder` contains its external data; without it a model with external
/// data is refused. `source` is the model's name in messages.
Graph import_onnx(std::span<const std::byte> bytes, std::optional<std::string> folder = {},
                  const std::string& source = "model",
                  std::vector<std::string>* warnings = nullptr);

}  // namespace tenon::frontends::onnx
