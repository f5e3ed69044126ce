#pragma once

#include "ir/graph.h"

#include <cstdint>
#include <optional>
#include <string>

namespace tenon::frontends::onnx {

struct ExportOptions {
  /// ai.onnx opset of the model; by default the smallest one from 13 on that supports all nodes.
  std::optional<int> opset = std::nullopt;
  /// Larger weights in total are stored in an external file next to the model, NAME.data.
  std::uint64_t max_embedded_bytes = 1'900'000'000;
};

/// Writes the graph as an ONNX model. Weights are materialized and written one at a time. Throws
/// one Error (Unsupported) that lists everything without a representation in ONNX, before any file
/// is touched.
void export_onnx(const Graph& graph, const std::string& path, const ExportOptions& options = {});

/// Returns the serialized model; refuses one whose weights exceed `max_embedded_bytes`.
std::string export_onnx(const Graph& graph, const ExportOptions& options = {});

}  // namespace tenon::frontends::onnx
