#pragma once

#include "ir/tensor.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace tenon::numpy {

/// Reads an array in NumPy's `.npy` format (versions 1 to 3), in either byte order and either order
/// of axes; fixed-width texts become strings. NumPy has no word for bf16 and the small floats and
/// writes them as opaque bytes: these are read as `as` where that has their width. With an `owner`
/// of the bytes the elements stay where they are if they can. Throws Error for bytes that are no
/// array, and (Unsupported) for arrays of Python objects, records and dates.
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
/// The same, but elements stay where they are even if they lie askew, as NumPy's own archives have
/// them.
StoredArray stored_npy(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);
/// The same as `read_npy` for a file, which is mapped.
Tensor read_npy_file(const std::string& path, std::optional<DType> as = {});

/// The array as a `.npy` file. What NumPy has no type for is widened without loss: bf16 and smaller
/// floats to f32, i4 and i2 to i8, u4 and u2 to u8.
std::string write_npy(const Tensor& tensor);
void write_npy_file(const Tensor& tensor, const std::string& path);

}  // namespace tenon::numpy
