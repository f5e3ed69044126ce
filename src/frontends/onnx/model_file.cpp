#include "frontends/onnx/model_file.h"

#include "base/error.h"
#include "base/text.h"
#include "frontends/onnx/schema/onnx.pb.h"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <new>

namespace tenon::frontends::onnx {
namespace {

using onnx_schema::ModelProto;

// A nested graph takes three messages (graph, node, attribute); messages are walked recursively, so
// this also bounds the stack.
constexpr int kMaxMessageNesting = 200;
constexpr std::size_t kAlignment = 64;

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
  return Error("the model is larger than an ONNX file can be, even without its weights")
      .at(source)
      .expected("less than 2 GiB")
      .got(format_bytes(bytes));
}

}  // namespace

ModelFile::ModelFile(const std::string& path) : file_(MappedFile::open(path)) {
  read(file_->bytes(), path);
}

ModelFile::ModelFile(std::span<const std::byte> bytes, const std::string& source) : bytes_(bytes) {
  read(bytes, source);
}

void ModelFile::read(std::span<const std::byte> bytes, const std::string& source) {
  try {
    parse(bytes, source);
  } catch (const std::bad_alloc&) {
    throw Error("no memory for the model's message", ErrorKind::OutOfMemory)
        .at(source)
        .got("a model of ", format_bytes(bytes.size()));
  }
}

void ModelFile::parse(std::span<const std::byte> bytes, const std::string& source) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::string_view read = text;
  std::optional<ModelSkeleton> skeleton = lift_weights(bytes);
  if (skeleton) {
    weights_ = std::move(skeleton->weights);
    read = skeleton->message;
  }
  if (read.size() > INT_MAX) throw too_large(bytes.size(), source);
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(read.data()),
                                            static_cast<int>(read.size()));
  in.SetRecursionLimit(kMaxMessageNesting);
  message_ = std::make_shared<ModelProto>();
  const bool is_whole = message_->ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
  // Most short byte strings are valid messages, but a model must have a graph.
  if (!is_whole || !message_->has_graph()) throw not_a_model(text.substr(0, 64), source);
  // Reading the weights' headers loaded surrounding pages; the weights themselves are read without
  // the mapping.
  if (file_ && skeleton) file_->forget_pages();
}

std::optional<ModelFile::Elements> ModelFile::read_elements(std::size_t position) const {
  const auto weight = std::ranges::lower_bound(weights_, position, {}, &LiftedWeight::initializer);
  if (weight == weights_.end() || weight->initializer != position) return std::nullopt;
  void* block =
      std::aligned_alloc(kAlignment, (weight->size + kAlignment) / kAlignment * kAlignment);
  if (!block) {
    throw Error("no memory for a weight", ErrorKind::OutOfMemory)
        .got(format_bytes(weight->size), " wanted");
  }
  const std::shared_ptr<void> owner(block, std::free);
  const std::span<std::byte> elements(static_cast<std::byte*>(block), weight->size);
  if (file_) {
    file_->read(weight->offset, elements);
  } else {
    std::ranges::copy(bytes_.subspan(weight->offset, weight->size), elements.begin());
  }
  return Elements{weight->field, owner, elements};
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return "";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace tenon::frontends::onnx
