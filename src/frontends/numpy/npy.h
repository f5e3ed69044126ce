#pragma once

#include "ir/tensor.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace tenon::frontends::numpy {

/// Reads an array in NumPy's `.npy` format (versions 1 to 3), in either byte order and either order
/// of axes; fixed-width texts become strings. NumPy lacks bf16 and small floats and writes them as
/// opaque bytes, which are read as type `as` if the widths match. With an `owner` of the bytes, the
/// elements are not copied if possible. Throws Error for malformed bytes, and (Unsupported) for
/// arrays of Python objects, records and dates.
Tensor read_npy(std::span<const std::byte> bytes, std::optional<DType> as = {},
                std::shared_ptr<const void> owner = nullptr);
/// Elements in row-major order and this machine's byte order, at any address.
struct StoredArray {
  DType dtype = DType::F32;
  Shape shape;
  std::span<const std::byte> bytes;
  /// of the bytes
  std::shared_ptr<const void> owner;
};
/// Reads an array without copying unaligned elements, which occur in NumPy's own archives.
StoredArray stored_npy(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);
/// Maps a file and reads it like `read_npy`.
Tensor read_npy_file(const std::string& path, std::optional<DType> as = {});

/// Returns the array as a `.npy` file. Types that NumPy lacks are widened without loss: bf16 and
/// smaller floats to f32, i4 and i2 to i8, u4 and u2 to u8.
std::string write_npy(const Tensor& tensor);
void write_npy_file(const Tensor& tensor, const std::string& path);

}  // namespace tenon::frontends::numpy
