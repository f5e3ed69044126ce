#pragma once

#include "ir/graph.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace tenon::onnx {

/// Reads a model into a verified graph. Weights stay where they were read; external data is mapped.
/// Throws Error for a file that is not a sound model, and one Error (Unsupported) that lists
/// everything Tenon cannot import.
Graph import_onnx(const std::string& path);

/// The same for a model in memory. `folder` is where its external data lies; without one a model
/// with external data is refused. `source` is what messages call the model.
Graph import_onnx(std::span<const std::byte> bytes, std::optional<std::string> folder = {},
                  const std::string& source = "model");

}  // namespace tenon::onnx
