#pragma once

#include "ir/graph.h"

#include <cstdint>
#include <optional>
#include <string>

namespace tenon::onnx {

struct ExportOptions {
  /// The ai.onnx opset to write; without one the smallest from 13 on that has all the nodes need.
  std::optional<int> opset = std::nullopt;
  /// Weights that take more than this together go into a file beside the model, NAME.data.
  std::uint64_t max_embedded_bytes = 1'900'000'000;
};

/// Writes the graph as an ONNX model. Weights are made and written one at a time. Throws one Error
/// (Unsupported) that lists everything ONNX has no way to say, before any file is touched.
void export_onnx(const Graph& graph, const std::string& path, const ExportOptions& options = {});

/// The model in memory; refuses one whose weights exceed `max_embedded_bytes`.
std::string export_onnx(const Graph& graph, const ExportOptions& options = {});

}  // namespace tenon::onnx
