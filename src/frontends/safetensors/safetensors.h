#pragma once

#include "ir/tensor.h"

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tenon::frontends {

/// Named tensors and texts in a file of the safetensors format: a header in JSON, then the
/// elements.
struct SafeTensors {
  /// in the order of the file
  std::vector<std::pair<std::string, Tensor>> tensors;
  std::map<std::string, std::string> metadata;
};

/// With an `owner` of the bytes, the elements are not copied if possible. Throws Error for
/// malformed bytes, and for elements that overlap, leave gaps or contradict their shapes.
SafeTensors read_safetensors(std::span<const std::byte> bytes,
                             std::shared_ptr<const void> owner = nullptr);
/// Maps a file and reads it.
SafeTensors read_safetensors_file(const std::string& path);

/// Writes the tensors in their order, each aligned to 8 bytes; the same content gives the same
/// bytes. The file appears only when it is complete. Throws Error for element types that the format
/// lacks.
void write_safetensors_file(const SafeTensors& content, const std::string& path);

}  // namespace tenon::frontends
