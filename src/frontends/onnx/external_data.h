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

namespace tenon::onnx {

/// The files beside a model that hold the data of its tensors; each is mapped once.
class ExternalFiles {
 public:
  /// No folder: every tensor with external data is refused.
  ExternalFiles() = default;
  /// Files are opened beneath this folder only; "" is the current one.
  explicit ExternalFiles(std::string folder) : folder_(std::move(folder)), has_folder_(true) {}

  struct Piece {
    std::shared_ptr<const MappedFile> file;
    std::span<const std::byte> bytes;
  };
  /// The bytes that the tensor's `external_data` entries name. Throws Error where they name none,
  /// lie outside the file, or do not have the checksum that is given.
  Piece bytes_of(const onnx_schema::TensorProto& tensor);

 private:
  struct OpenFile {
    std::shared_ptr<const MappedFile> file;
    /// worked out when the first tensor asks
    std::string sha1;
  };
  std::string folder_;
  bool has_folder_ = false;
  std::map<std::string, OpenFile> files_;
};

}  // namespace tenon::onnx
