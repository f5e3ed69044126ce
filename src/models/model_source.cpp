#include "models/model_source.h"

#include "base/error.h"
#include "base/text.h"
#include "frontends/onnx/import.h"
#include "frontends/torch/import.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "program/appended.h"
#include "program/file.h"
#include "testing/random_graph/random_graph.h"
#include "zoo/zoo.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <span>

namespace tenon::models {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kZooPrefix = "zoo:", kRandomPrefix = "random:", kProgramEnding = ".tnn",
                           kSharedObjectEnding = ".so";
constexpr std::size_t kHeadBytes = 4096, kMostPipedBytes = std::size_t{4} << 30;

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

// Returns whether the bytes are printable text, without control characters.
bool is_text(std::string_view head) {
  const auto controls = std::count_if(head.begin(), head.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\r' && c != '\t';
  });
  return !head.empty() && controls == 0;
}

// Reads up to that many bytes from the current position of `file`.
std::string read_bytes(int file, std::size_t most_bytes, const std::string& name) {
  std::string bytes;
  for (std::size_t piece = 1 << 16; bytes.size() < most_bytes;
       piece = std::max(piece, bytes.size() / 4)) {
    const std::size_t begin = bytes.size();
    bytes.resize(std::min(most_bytes, begin + piece));
    ssize_t count = 0;
    do {
      count = ::read(file, bytes.data() + begin, bytes.size() - begin);
    } while (count < 0 && errno == EINTR);
    if (count < 0) {
      throw Error("cannot read the model", ErrorKind::Usage)
          .at(name)
          .got(std::generic_category().message(errno));
    }
    bytes.resize(begin + static_cast<std::size_t>(count));
    if (count == 0) break;
  }
  return bytes;
}

// An open file, closed by the destructor.
class SourceFile {
 public:
  explicit SourceFile(const std::string& path)
      : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (number_ >= 0) return;
    throw Error("cannot open the model", ErrorKind::Usage)
        .at(path)
        .got(std::generic_category().message(errno))
        .hint("a model is a file, zoo:NAME, or - for standard input");
  }
  SourceFile(const SourceFile&) = delete;
  ~SourceFile() { ::close(number_); }
  int number() const { return number_; }

 private:
  int number_;
};

std::string read_piped(int file, const std::string& name) {
  std::string bytes = read_bytes(file, kMostPipedBytes, name);
  if (bytes.size() == kMostPipedBytes) {
    throw Error("the model is too large to be read from a pipe", ErrorKind::Usage)
        .at(name)
        .expected("less than ", format_bytes(kMostPipedBytes))
        .hint("give it as a file");
  }
  return bytes;
}

}  // namespace

ModelSource::ModelSource(std::string argument) : argument_(std::move(argument)), name_(argument_) {
  if (argument_.rfind(kZooPrefix, 0) == 0) {
    kind_ = Kind::Zoo;
    return;
  }
  if (argument_.rfind(kRandomPrefix, 0) == 0) {
    kind_ = Kind::Random;
    return;
  }
  if (argument_ == "-") {
    kind_ = Kind::Bytes;
    name_ = "standard input";
    bytes_ = read_piped(STDIN_FILENO, name_);
    return;
  }
  std::error_code unreadable;  // opening it reports the reason
  const fs::file_status status = fs::status(argument_, unreadable);
  if (fs::is_directory(status))
    throw Error("a model is a file, not a folder", ErrorKind::Usage).got(argument_);
  if (fs::is_regular_file(status)) return;
  const SourceFile file(argument_);
  kind_ = Kind::Bytes;
  bytes_ = read_piped(file.number(), name_);
}

ModelSource ModelSource::of_bytes(std::string bytes, std::string name) {
  ModelSource source;
  source.kind_ = Kind::Bytes;
  source.name_ = std::move(name);
  source.bytes_ = std::move(bytes);
  return source;
}

std::string ModelSource::head() const {
  if (kind_ == Kind::Bytes) return bytes_.substr(0, kHeadBytes);
  return read_bytes(SourceFile(argument_).number(), kHeadBytes, name_);
}

std::string ModelSource::whole() const {
  if (kind_ == Kind::Bytes) return bytes_;
  return read_bytes(SourceFile(argument_).number(), std::string::npos / 2, name_);
}

bool ModelSource::is_program() const {
  if (kind_ == Kind::Zoo || kind_ == Kind::Random) return false;
  const std::string start = head();
  return starts_like_program(std::as_bytes(std::span(start)));
}

std::optional<Program> ModelSource::program(bool is_trusted) const {
  // The extension of a shared object marks it as machine code.
  if (kind_ == Kind::File && argument_.ends_with(kSharedObjectEnding))
    return read_appended(argument_);
  if (!is_program()) return std::nullopt;
  if (kind_ == Kind::Bytes) {
    throw Error("a program is not read from a pipe", ErrorKind::Usage)
        .at(name_)
        .hint("give it as a file: FILE.tnn");
  }
  if (!is_trusted && !argument_.ends_with(kProgramEnding)) {
    throw Error(
        "this is not a model but a program: machine code, under a name that does not say so")
        .at(name_)
        .expected("a program's name ends in .tnn")
        .hint("if you trust it as you would an executable, rename it or give --trust-program");
  }
  return read_program(argument_);
}

LoadedDocument ModelSource::document() const {
  if (kind_ == Kind::Zoo || kind_ == Kind::Random) return {};
  const std::string start = head();
  if (looks_like_text_graph(start)) return {};
  const documents::DocumentFormat* format = documents::recognised_format(start);
  if (format == nullptr) return {};
  return {format, format->read(whole(), name_)};
}

void ModelSource::add_values(Graph& graph) const {
  const std::string path = values_path(argument_);
  std::error_code none;
  if (kind_ != Kind::File || !fs::is_regular_file(path, none)) return;
  const std::string text = read_bytes(SourceFile(path).number(), std::string::npos / 2, path);
  try {
    documents::set_values(graph, parse_graph(text, all_ops(), path));
  } catch (Error& error) {
    throw error.hint("the document has changed since; without ", path, " its weights are made up");
  }
}

// Error for text of no known format: the position that each format's reader reached.
Error ModelSource::unrecognised() const {
  constexpr std::size_t most_bytes = 1 << 20;  // enough for detection
  const std::string text = whole().substr(0, most_bytes);
  std::string tried;
  const auto note = [&](const std::string& format, const Error& error) {
    tried += concat("\n  - ", format, ": ", error.summary(),
                    error.has_place() ? concat(", at ", error.place()) : "");
  };
  try {
    parse_graph(text, all_ops(), "text");
  } catch (const Error& error) {
    note("tenon", error);
  }
  for (const documents::DocumentFormat& format : documents::document_formats()) {
    try {
      format.read(text, "text");
      tried += concat("\n  - ", format.name, ": it reads as that, but does not start like it");
    } catch (const Error& error) {
      note(format.name, error);
    }
  }
  return Error(concat("the text is of no format that is known", tried,
                      "\n  - onnx: a model is binary, and this is text"))
      .at(name_);
}

Graph ModelSource::graph(std::vector<std::string>* warnings) const {
  if (kind_ == Kind::Zoo) return zoo::build(argument_.substr(kZooPrefix.size()));
  if (kind_ == Kind::Random) return testing::random_graph(argument_.substr(kRandomPrefix.size()));
  if (is_program()) {
    throw Error("a program is machine code, and no model any more", ErrorKind::Usage)
        .at(name_)
        .hint(
            "`tenon run` and `tenon bench` take it; here, give the model that it was compiled "
            "from");
  }
  if (const LoadedDocument loaded = document(); loaded.document) {
    Graph graph = loaded.document->graph();
    add_values(graph);
    return graph;
  }
  if (looks_like_text_graph(head())) return parse_graph(whole(), all_ops(), name_);
  if (is_text(head())) throw unrecognised();
  if (frontends::torch::is_archive(head())) {
    if (kind_ == Kind::File) return frontends::torch::import_torch(argument_, warnings);
    auto bytes = std::make_shared<const std::string>(bytes_);
    return frontends::torch::import_torch(std::as_bytes(std::span(*bytes)), bytes, name_, warnings);
  }
  if (kind_ == Kind::Bytes) {
    return frontends::onnx::import_onnx(std::as_bytes(std::span(bytes_)), {}, name_, warnings);
  }
  return frontends::onnx::import_onnx(argument_, warnings);
}

}  // namespace tenon::models
