#pragma once

#include "ir/tensor.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace tenon::frontends::numpy {

/// Encoding of the elements in a file.
struct NpyFormat {
  /// NumPy's letter: b i u f c S U V
  char kind = 'f';
  /// of one element
  std::size_t item_bytes = 4;
  bool is_big_endian = false;
};

/// Header of an array file.
struct NpyHeader {
  NpyFormat format;
  bool is_fortran_order = false;
  Shape shape;
  std::size_t data_offset = 0;
};

/// Throws Error for bytes without a valid header.
NpyHeader read_header(std::span<const std::byte> bytes);
/// Returns magic number, version and header, padded to a multiple of 64 bytes.
std::string write_header(const std::string& description, const Shape& shape);

/// Converts "<f4" and similar codes to dtypes, and dtypes that NumPy has to codes.
std::optional<DType> dtype_of(const NpyFormat& format);
std::optional<std::string> description_of(DType dtype);

}  // namespace tenon::frontends::numpy
