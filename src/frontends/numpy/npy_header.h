#pragma once

#include "ir/tensor.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace tenon::numpy {

/// How the elements of an array lie in a file.
struct Format {
  /// NumPy's letter: b i u f c S U V
  char kind = 'f';
  /// of one element
  std::size_t item_bytes = 4;
  bool is_big_endian = false;
};

/// What stands before an array's elements.
struct Header {
  Format format;
  bool is_fortran_order = false;
  Shape shape;
  std::size_t data_offset = 0;
};

/// Throws Error for bytes that do not start with a header.
Header read_header(std::span<const std::byte> bytes);
/// Magic number, version and header, padded to a multiple of 64 bytes.
std::string write_header(const std::string& description, const Shape& shape);

/// "<f4" and the like; the other way round for the dtypes that NumPy has.
std::optional<DType> dtype_of(const Format& format);
std::optional<std::string> description_of(DType dtype);

}  // namespace tenon::numpy
