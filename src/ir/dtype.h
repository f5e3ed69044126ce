#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tenon::inline ir {

/// Element type of a tensor.
enum class DType : std::uint8_t {
  F64,
  F32,
  F16,
  BF16,
  F8E4M3FN,
  F8E4M3FNUZ,
  F8E5M2,
  F8E5M2FNUZ,
  F8E8M0,
  F4E2M1,
  I64,
  I32,
  I16,
  I8,
  I4,
  I2,
  U64,
  U32,
  U16,
  U8,
  U4,
  U2,
  Bool,
  C64,
  C128,
  String,
};

/// Arithmetic that computes on a dtype. Narrow floats compute as F32, narrow integers wrap.
enum class Arithmetic : std::uint8_t { F64, F32, Signed, Unsigned, Bool, Complex, Text };

struct DTypeInfo {
  DType dtype;
  /// Name in the text form, e.g. "f32".
  std::string_view name;
  /// Bits per element for memory accounting; 0 for strings.
  int bits;
  /// Bytes per element in a Tensor; sub-byte types take a whole byte.
  std::size_t storage_bytes;
  Arithmetic arithmetic;
};

const DTypeInfo& info(DType dtype);
std::span<const DTypeInfo> all_dtypes();
std::optional<DType> parse_dtype(std::string_view name);
std::string to_string(DType dtype);

/// Real floating point of any width.
bool is_float(DType dtype);
/// Signed or unsigned, not bool.
bool is_integer(DType dtype);
bool is_complex(DType dtype);

/// Least and greatest value of an integer dtype (or of bool: 0 and 1).
std::int64_t lowest_integer(DType dtype);
std::uint64_t highest_integer(DType dtype);
/// Greatest finite value of a floating dtype.
double highest_finite(DType dtype);

}  // namespace tenon::inline ir
