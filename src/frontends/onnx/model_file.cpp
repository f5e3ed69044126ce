#include "frontends/onnx/model_file.h"

#include "base/error.h"
#include "base/text.h"
#include "frontends/onnx/schema/onnx.pb.h"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

namespace tenon::onnx {
namespace {

using google::protobuf::io::CodedInputStream;
using google::protobuf::io::FileInputStream;
using onnx_schema::ModelProto;

// A graph in a graph takes three messages (graph, node, attribute); what is read is walked by
// recursion, so this also bounds the stack.
constexpr int kMaxNesting = 200;
constexpr int kReadBytes = 1 << 20;
constexpr std::uint64_t kMaxMessageBytes = INT_MAX;

std::string what_it_is(std::string_view start) {
  if (start.starts_with("version https://git-lfs")) {
    return "a Git LFS pointer: the model itself was not downloaded";
  }
  if (start.starts_with("PK\x03\x04")) return "a zip archive";
  if (start.starts_with("\x1f\x8b")) return "compressed with gzip";
  if (start.starts_with("\x89HDF")) return "an HDF5 file";
  if (start.starts_with("\x93NUMPY")) return "a NumPy array";
  if (start.starts_with("<")) return "a text in HTML or XML";
  bool is_text = !start.empty();
  for (char c : start) is_text &= c == '\n' || c == '\t' || c == '\r' || (c >= ' ' && c <= '~');
  return is_text ? "a text" : "";
}

Error not_a_model(std::string_view start, const std::string& source) {
  Error error("not an ONNX model, or damaged");
  error.at(source);
  if (const std::string found = what_it_is(start); !found.empty()) error.got(found);
  return error;
}

Error too_large(std::uint64_t bytes, const std::string& source) {
  return Error("the model is larger than an ONNX file can be")
      .at(source)
      .expected("less than 2 GiB")
      .got(format_bytes(bytes))
      .hint("write its weights as external data");
}

std::shared_ptr<ModelProto> parse(CodedInputStream& in, std::string_view start,
                                  const std::string& source) {
  in.SetRecursionLimit(kMaxNesting);
  auto model = std::make_shared<ModelProto>();
  const bool is_whole = model->ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
  // Almost any few bytes are some message, but no model is without a graph.
  if (!is_whole || !model->has_graph()) throw not_a_model(start, source);
  return model;
}

}  // namespace

std::shared_ptr<ModelProto> read_model(const std::string& path) {
  const int number = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (number < 0) {
    throw Error(concat("cannot open '", path, "': ", std::strerror(errno)));
  }
  FileInputStream file(number, kReadBytes);
  file.SetCloseOnDelete(true);
  struct stat status {};
  if (fstat(number, &status) != 0 || !S_ISREG(status.st_mode)) {
    throw Error(concat("'", path, "' is not a regular file"));
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > kMaxMessageBytes) throw too_large(size, path);
  char start[64];
  const ssize_t start_bytes = pread(number, start, sizeof(start), 0);
  CodedInputStream in(&file);
  return parse(in, {start, static_cast<std::size_t>(std::max<ssize_t>(start_bytes, 0))}, path);
}

std::shared_ptr<ModelProto> read_model(std::span<const std::byte> bytes,
                                       const std::string& source) {
  if (bytes.size() > kMaxMessageBytes) throw too_large(bytes.size(), source);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  CodedInputStream in(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                      static_cast<int>(bytes.size()));
  return parse(in, text.substr(0, 64), source);
}

bool looks_like_model(std::span<const std::byte> start) {
  if (start.size() < 2) return false;
  // Writers put fields in the order of their numbers, so a model starts with its IR version or, in
  // files that leave that out, with a producer, a domain, or the graph itself.
  const auto tag = std::to_integer<unsigned>(start[0]);
  if (tag == 0x08) return std::to_integer<unsigned>(start[1]) < 0x80;
  if (tag == 0x12 || tag == 0x1a || tag == 0x22 || tag == 0x3a || tag == 0x42) {
    const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
    return what_it_is(text).empty();
  }
  return false;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return "";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace tenon::onnx
