#pragma once

#include "documents/document.h"
#include "ir/graph.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::models {

class ModelSource;

/// A format that models are read from or written to.
struct ModelFormat {
  std::string name;
  std::string summary;
};
const std::vector<ModelFormat>& formats();

/// Reads a model: `zoo:NAME?param=value,…`, `random:SEED?nodes=COUNT`, `-` or a file, whose format
/// is detected by content.
Graph load_model(const std::string& argument);
/// A document in a foreign format; null for Tenon's own.
struct LoadedDocument {
  const documents::DocumentFormat* format = nullptr;
  std::unique_ptr<documents::Document> document;
};

struct SaveOptions {
  /// 0: the newest opset that the ops need
  int onnx_opset = 0;
  /// variant of the format, if it has any
  std::string style;
  /// Optional: annotates a graph with kernels, for a format that names them.
  std::function<Graph(Graph)> note_kernels = {};
};
/// Returns the path of the elements of constants that a document only describes: a graph of
/// constants in Tenon's text form, next to the document.
std::string values_path(const std::string& document);

/// Writes a graph in the format of that name. The file appears only when it is complete; constants
/// that a document cannot hold go to `values_path`.
void save_model(const Graph& graph, const std::string& format, const std::string& path,
                const SaveOptions& options = {});
/// Writes the model of an argument. A document written in its own format is preserved completely.
void convert_model(const ModelSource& source, const std::string& format, const std::string& path,
                   const SaveOptions& options = {});
/// Returns the text that `save_model` would write, for a text format.
std::string model_text(const Graph& graph, const std::string& format,
                       const SaveOptions& options = {});

}  // namespace tenon::models
