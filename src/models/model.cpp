#include "models/model.h"

#include "base/error.h"
#include "base/new_file.h"
#include "base/text.h"
#include "frontends/onnx/export.h"
#include "ir/text.h"
#include "models/model_source.h"

#include <filesystem>
#include <sstream>

namespace tenon::models {
namespace {

void write_file(const std::string& path, const std::string& text) {
  NewFile file(path);
  file.out() << text;
  file.finish();
}

documents::WrittenDocument write_document(const documents::DocumentFormat& format,
                                          const Graph& graph, const SaveOptions& options) {
  return format.write(options.note_kernels ? options.note_kernels(graph) : graph);
}

// Writes the elements that a document only describes to a file next to it, unless that is a pipe.
void write_values(const std::string& path, const documents::WrittenDocument& written,
                  const SaveOptions& options) {
  namespace fs = std::filesystem;
  const std::string beside = values_path(path);
  std::error_code none;
  if (!fs::is_regular_file(path, none)) return;
  if (written.values.empty() || options.style == "metadata") {
    fs::remove(beside, none);  // left from a previous document
    return;
  }
  std::ostringstream text;
  print(documents::values_graph(written), text);
  write_file(beside, std::move(text).str());
}

void refuse_style(const std::string& format, const SaveOptions& options) {
  if (options.style.empty()) return;
  throw Error(concat("the format '", format, "' has one style only"), ErrorKind::Usage)
      .got("style '", options.style, "'");
}

}  // namespace

const std::vector<ModelFormat>& formats() {
  static const std::vector<ModelFormat> list = [] {
    std::vector<ModelFormat> all = {{"tenon", "Tenon's own text form"},
                                    {"onnx", "ONNX, every opset"}};
    for (const documents::DocumentFormat& format : documents::document_formats())
      all.push_back({format.name, format.summary});
    return all;
  }();
  return list;
}

std::string values_path(const std::string& document) { return document + ".values.tenon"; }

Graph load_model(const std::string& argument) { return ModelSource(argument).graph(); }

std::string model_text(const Graph& graph, const std::string& format, const SaveOptions& options) {
  if (const documents::DocumentFormat* known = documents::find_document_format(format)) {
    return write_document(*known, graph, options).document->text(options.style);
  }
  refuse_style(format, options);
  if (format == "tenon") {
    std::ostringstream text;
    print(graph, text);
    return std::move(text).str();
  }
  if (format == "onnx") {
    throw Error("ONNX is not a text", ErrorKind::Usage).hint("give a file to write: -o FILE");
  }
  std::vector<std::string> known;
  for (const ModelFormat& entry : formats()) known.push_back(entry.name);
  throw Error(concat("no format is called '", format, "'"), ErrorKind::Usage)
      .hint(suggest_name(format, known));
}

void save_model(const Graph& graph, const std::string& format, const std::string& path,
                const SaveOptions& options) {
  if (format == "onnx") {
    refuse_style(format, options);
    // Renamed into place when complete; the weights file is named after the model.
    frontends::onnx::ExportOptions settings;
    if (options.onnx_opset != 0) settings.opset = options.onnx_opset;
    frontends::onnx::export_onnx(graph, path, settings);
  } else if (const documents::DocumentFormat* known = documents::find_document_format(format)) {
    const documents::WrittenDocument written = write_document(*known, graph, options);
    write_file(path, written.document->text(options.style));
    write_values(path, written, options);
  } else {
    write_file(path, model_text(graph, format, options));
  }
}

void convert_model(const ModelSource& source, const std::string& format, const std::string& path,
                   const SaveOptions& options) {
  const LoadedDocument loaded = source.document();
  if (loaded.document && loaded.format->name == format) {
    if (options.note_kernels)
      loaded.document->add_kernels(options.note_kernels(loaded.document->graph()));
    write_file(path, loaded.document->text(options.style));
  } else {
    save_model(source.graph(), format, path, options);
  }
}

}  // namespace tenon::models
