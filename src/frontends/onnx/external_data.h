#pragma once

#include "frontends/mapped_file.h"

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>

namespace onnx_schema {
class TensorProto;
}

namespace tenon::frontends::onnx {

/// External data files of a model's tensors; each is mapped once.
class ExternalFiles {
 public:
  /// Without a folder, tensors with external data are refused.
  ExternalFiles() = default;
  /// Opens only files below this folder; "" is the current one.
  explicit ExternalFiles(std::string folder) : folder_(std::move(folder)), has_folder_(true) {}

  struct Piece {
    std::shared_ptr<const MappedFile> file;
    std::span<const std::byte> bytes;
  };
  /// Returns the bytes of the tensor's `external_data` entries. Throws Error for missing entries,
  /// ranges outside the file, and wrong checksums.
  Piece bytes_of(const onnx_schema::TensorProto& tensor);

 private:
  struct OpenFile {
    std::shared_ptr<const MappedFile> file;
    /// computed on first use
    std::string sha1;
  };
  std::string folder_;
  bool has_folder_ = false;
  std::map<std::string, OpenFile> files_;
};

}  // namespace tenon::frontends::onnx
