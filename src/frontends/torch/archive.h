#pragma once

#include "frontends/json.h"
#include "frontends/numpy/zip.h"
#include "ir/dtype.h"
#include "ir/tensor.h"

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tenon::frontends::torch {

/// Returns the element type of a number of PyTorch's export schema ("7" is f32); complex types give
/// the type of their parts. Throws Error (Unsupported) for types that Tenon lacks.
DType dtype_of_scalar_type(std::int64_t number);
bool is_complex_type(std::int64_t number);

/// A `.pt2` archive: the zip file that `torch.export.save` writes. It holds the exported program as
/// JSON and its parameters, buffers and constants.
class Archive {
 public:
  /// Elements of stored tensors are not copied; `owner` keeps the bytes. Throws Error for bytes
  /// of another format.
  Archive(std::span<const std::byte> bytes, std::shared_ptr<const void> owner, std::string source);

  JsonReader program() const { return {program_, source_}; }
  const std::string& source() const { return source_; }
  /// Returns a parameter, buffer or constant by its qualified name. Throws Error if it is missing
  /// or contradicts its description.
  Tensor tensor(const std::string& name);

 private:
  std::optional<numpy::ZipEntry> find(std::string_view path) const;
  std::string text_of(const numpy::ZipEntry& entry);
  void read_tensors(const std::string& config, std::string_view folder);

  struct Stored {
    /// Path in the archive.
    std::string path;
    JsonValue description;
  };

  std::string source_;
  std::shared_ptr<const void> owner_;
  numpy::ZipReader reader_;
  std::vector<numpy::ZipEntry> entries_;
  /// Folder of all entries, with its slash.
  std::string root_;
  JsonValue program_;
  std::map<std::string, Stored, std::less<>> tensors_;
};

}  // namespace tenon::frontends::torch
