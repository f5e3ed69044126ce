#pragma once

#include "frontends/mapped_file.h"
#include "frontends/onnx/lift_weights.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace onnx_schema {
class ModelProto;
}

namespace tenon::frontends::onnx {

/// A model's message, with large weights still in the file.
class ModelFile {
 public:
  /// Throws Error (at `path`) for a file that cannot be read, is not an ONNX model, or nests too
  /// deeply.
  explicit ModelFile(const std::string& path);
  /// Reads bytes that outlive this object; `source` is the name in messages.
  ModelFile(std::span<const std::byte> bytes, const std::string& source);

  const std::shared_ptr<onnx_schema::ModelProto>& message() const { return message_; }

  struct Elements {
    /// field of TensorProto that contained them
    int field = 0;
    std::shared_ptr<const void> owner;
    std::span<const std::byte> bytes;
  };
  /// Reads the elements of the main graph's initializer at `position`; nullopt if the message has
  /// them.
  std::optional<Elements> read_elements(std::size_t position) const;

 private:
  void read(std::span<const std::byte> bytes, const std::string& source);
  void parse(std::span<const std::byte> bytes, const std::string& source);

  /// null for bytes in memory
  std::shared_ptr<const MappedFile> file_;
  std::span<const std::byte> bytes_;
  std::shared_ptr<onnx_schema::ModelProto> message_;
  std::vector<LiftedWeight> weights_;
};

/// "models" for "models/a.onnx", "" for "a.onnx".
std::string folder_of(const std::string& path);

}  // namespace tenon::frontends::onnx
