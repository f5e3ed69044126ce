#include "driver/model.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/text.h"
#include "driver/zoo/zoo.h"
#include "frontends/onnx/export.h"
#include "frontends/onnx/import.h"
#include "ir/text.h"
#include "ops/registry.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kZooPrefix = "zoo:";

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

void write_text(const Graph& graph, const std::string& path) {
  std::ofstream stream(path, std::ios::binary);
  print(graph, stream);
  stream.flush();
  if (!stream) throw Error("cannot write the file", ErrorKind::Usage).got(path);
}

}  // namespace

const std::vector<Format>& formats() {
  static const std::vector<Format> list = {
      {"tenon", "Tenon's own text form", true, true},
      {"onnx", "ONNX, every opset", true, true},
  };
  return list;
}

Graph load_model(const std::string& argument) {
  if (argument.rfind(kZooPrefix, 0) == 0) return zoo::build(argument.substr(kZooPrefix.size()));
  std::error_code unreadable;  // and so no folder: opening it as a file says why
  if (fs::is_directory(argument, unreadable)) {
    throw Error("a model is a file, not a folder", ErrorKind::Usage).got(argument);
  }
  if (looks_like_text_graph(read_head(argument))) {
    return parse_graph(read_whole(argument), all_ops(), argument);
  }
  return onnx::import_onnx(argument);
}

void save_model(const Graph& graph, const std::string& format, const std::string& path,
                const SaveOptions& options) {
  std::vector<std::string> known;
  for (const Format& entry : formats()) known.push_back(entry.name);
  if (format == "tenon") {
    // Written beside its place and moved there whole, so that an interrupted run loses nothing.
    const std::string unfinished = path + ".part";
    write_text(graph, unfinished);
    fs::rename(unfinished, path);
  } else if (format == "onnx") {
    // Does the same itself; its file of weights is named after the model.
    onnx::ExportOptions settings;
    if (options.onnx_opset != 0) settings.opset = options.onnx_opset;
    onnx::export_onnx(graph, path, settings);
  } else {
    throw Error(concat("no format is called '", format, "'"), ErrorKind::Usage)
        .hint(suggest_name(format, known));
  }
}

}  // namespace tenon
