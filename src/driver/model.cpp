#include "driver/model.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/new_file.h"
#include "base/text.h"
#include "driver/random_graph/random_graph.h"
#include "driver/tuning/known_kernels.h"
#include "driver/zoo/zoo.h"
#include "frontends/aitemplate/kernel_choices.h"
#include "frontends/aitemplate/read_dump.h"
#include "frontends/onnx/export.h"
#include "frontends/onnx/import.h"
#include "ir/text.h"
#include "ops/registry.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kZooPrefix = "zoo:";
constexpr std::string_view kRandomPrefix = "random:";

// Tenon's text form starts, after comments, with the word `graph`.
bool looks_like_text_graph(std::string_view head) {
  while (!head.empty()) {
    head = trim(head);
    if (!head.empty() && head.front() == '#') {
      const std::size_t end = head.find('\n');
      head = end == std::string_view::npos ? "" : head.substr(end);
    } else {
      return head.rfind("graph", 0) == 0;
    }
  }
  return false;
}

std::string read_head(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    throw Error("cannot open the model", ErrorKind::Usage)
        .got(path)
        .hint("a model is a file or zoo:NAME");
  }
  std::string head(4096, '\0');
  stream.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(stream.gcount()));
  return head;
}

std::string read_whole(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return std::move(text).str();
}

void write_file(const std::string& path, const std::string& text) {
  NewFile file(path);
  file.out() << text;
  file.finish();
}

bool is_zoo(const std::string& argument) { return argument.rfind(kZooPrefix, 0) == 0; }
bool is_random(const std::string& argument) { return argument.rfind(kRandomPrefix, 0) == 0; }

void refuse_style(const std::string& format, const SaveOptions& options) {
  if (options.style.empty()) return;
  throw Error(concat("the format '", format, "' has one style only"), ErrorKind::Usage)
      .got("style '", options.style, "'");
}

}  // namespace

const std::vector<Format>& formats() {
  static const std::vector<Format> list = [] {
    std::vector<Format> all = {{"tenon", "Tenon's own text form"}, {"onnx", "ONNX, every opset"}};
    for (const DocumentFormat& format : document_formats()) all.push_back({format.name, format.summary});
    return all;
  }();
  return list;
}

LoadedDocument load_document(const std::string& argument) {
  if (is_zoo(argument) || is_random(argument)) return {};
  std::error_code unreadable;  // and so no folder: opening it as a file says why
  if (fs::is_directory(argument, unreadable)) {
    throw Error("a model is a file, not a folder", ErrorKind::Usage).got(argument);
  }
  const std::string head = read_head(argument);
  if (looks_like_text_graph(head)) return {};
  for (const DocumentFormat& format : document_formats()) {
    if (format.recognises(head)) return {&format, format.read(read_whole(argument), argument)};
  }
  return {};
}

Graph load_model(const std::string& argument) {
  if (is_zoo(argument)) return zoo::build(argument.substr(kZooPrefix.size()));
  if (is_random(argument)) return random_graph(argument.substr(kRandomPrefix.size()));
  if (const LoadedDocument loaded = load_document(argument); loaded.document) {
    return loaded.document->graph();
  }
  if (looks_like_text_graph(read_head(argument))) {
    return parse_graph(read_whole(argument), all_ops(), argument);
  }
  return onnx::import_onnx(argument);
}

std::string model_text(const Graph& graph, const std::string& format, const SaveOptions& options) {
  if (const DocumentFormat* known = find_document_format(format)) {
    if (options.timings != nullptr) {
      return known->from_graph(with_known_kernels(graph, *options.timings, 0))->text(options.style);
    }
    return known->from_graph(graph)->text(options.style);
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
  for (const Format& entry : formats()) known.push_back(entry.name);
  throw Error(concat("no format is called '", format, "'"), ErrorKind::Usage)
      .hint(suggest_name(format, known));
}

void save_model(const Graph& graph, const std::string& format, const std::string& path,
                const SaveOptions& options) {
  if (format == "onnx") {
    refuse_style(format, options);
    // Appears whole too; its file of weights is named after the model.
    onnx::ExportOptions settings;
    if (options.onnx_opset != 0) settings.opset = options.onnx_opset;
    onnx::export_onnx(graph, path, settings);
  } else {
    write_file(path, model_text(graph, format, options));
  }
}

void convert_model(const std::string& argument, const std::string& format, const std::string& path,
                   const SaveOptions& options) {
  const LoadedDocument loaded = load_document(argument);
  if (loaded.document && loaded.format->name == format) {
    std::string text = loaded.document->text(options.style);
    if (options.timings != nullptr && format == "aitemplate") {
      const Graph noted = with_known_kernels(loaded.document->graph(), *options.timings, 0);
      text = aitemplate::print_dump(aitemplate::with_kernels(aitemplate::read_dump(text, argument).dump, noted));
    }
    write_file(path, text);
  } else {
    save_model(loaded.document ? loaded.document->graph() : load_model(argument), format, path, options);
  }
}

}  // namespace tenon
