#pragma once

#include "frontends/document.h"
#include "ir/graph.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

class ModelSource;

/// A format that models are read from or written to.
struct Format {
  std::string name;
  std::string summary;
};
const std::vector<Format>& formats();

/// Reads a model: `zoo:NAME?param=value,…`, `random:SEED?nodes=COUNT`, `-` or a file, whose format
/// its content tells.
Graph load_model(const std::string& argument);
/// A file as its format has it; null where it is of no other system.
struct LoadedDocument {
  const DocumentFormat* format = nullptr;
  std::unique_ptr<Document> document;
};

struct SaveOptions {
  /// 0: the newest that the ops need
  int onnx_opset = 0;
  /// a variant of the format, where it has any
  std::string style;
  /// Where given, a format that names kernels gets those that this notes of a graph.
  std::function<Graph(Graph)> note_kernels = {};
};
/// Where the elements of constants lie that a document only describes: beside it, a graph of
/// constants in Tenon's text form.
std::string values_path(const std::string& document);

/// Writes a graph in the format of that name. The file appears only when it is complete; what a
/// document cannot hold of constants appears at `values_path`.
void save_model(const Graph& graph, const std::string& format, const std::string& path,
                const SaveOptions& options = {});
/// The same for a model as an argument names it. A document written in its own format keeps all it
/// says.
void convert_model(const ModelSource& source, const std::string& format, const std::string& path,
                   const SaveOptions& options = {});
/// What `save_model` would write, of a format that is text.
std::string model_text(const Graph& graph, const std::string& format,
                       const SaveOptions& options = {});

}  // namespace tenon
