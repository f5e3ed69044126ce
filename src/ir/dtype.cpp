#include "ir/dtype.h"

#include "base/error.h"

#include <array>
#include <limits>

namespace tenon::inline ir {

namespace {

// In the order of the enumerators: a dtype is an index into this table.
constexpr std::array<DTypeInfo, 26> kTable = {{
    {DType::F64, "f64", 64, 8, Arithmetic::F64},
    {DType::F32, "f32", 32, 4, Arithmetic::F32},
    {DType::F16, "f16", 16, 2, Arithmetic::F32},
    {DType::BF16, "bf16", 16, 2, Arithmetic::F32},
    {DType::F8E4M3FN, "f8e4m3fn", 8, 1, Arithmetic::F32},
    {DType::F8E4M3FNUZ, "f8e4m3fnuz", 8, 1, Arithmetic::F32},
    {DType::F8E5M2, "f8e5m2", 8, 1, Arithmetic::F32},
    {DType::F8E5M2FNUZ, "f8e5m2fnuz", 8, 1, Arithmetic::F32},
    {DType::F8E8M0, "f8e8m0", 8, 1, Arithmetic::F32},
    {DType::F4E2M1, "f4e2m1", 4, 1, Arithmetic::F32},
    {DType::I64, "i64", 64, 8, Arithmetic::Signed},
    {DType::I32, "i32", 32, 4, Arithmetic::Signed},
    {DType::I16, "i16", 16, 2, Arithmetic::Signed},
    {DType::I8, "i8", 8, 1, Arithmetic::Signed},
    {DType::I4, "i4", 4, 1, Arithmetic::Signed},
    {DType::I2, "i2", 2, 1, Arithmetic::Signed},
    {DType::U64, "u64", 64, 8, Arithmetic::Unsigned},
    {DType::U32, "u32", 32, 4, Arithmetic::Unsigned},
    {DType::U16, "u16", 16, 2, Arithmetic::Unsigned},
    {DType::U8, "u8", 8, 1, Arithmetic::Unsigned},
    {DType::U4, "u4", 4, 1, Arithmetic::Unsigned},
    {DType::U2, "u2", 2, 1, Arithmetic::Unsigned},
    {DType::Bool, "bool", 8, 1, Arithmetic::Bool},
    {DType::C64, "c64", 64, 8, Arithmetic::Complex},
    {DType::C128, "c128", 128, 16, Arithmetic::Complex},
    {DType::String, "string", 0, sizeof(std::string), Arithmetic::Text},
}};

constexpr bool is_in_enumerator_order() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (static_cast<std::size_t>(kTable[i].dtype) != i) return false;
  }
  return true;
}
static_assert(is_in_enumerator_order());

}  // namespace

const DTypeInfo& info(DType dtype) { return kTable[static_cast<std::size_t>(dtype)]; }

std::span<const DTypeInfo> all_dtypes() { return kTable; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (const DTypeInfo& row : kTable) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

std::string to_string(DType dtype) { return std::string(info(dtype).name); }

bool is_float(DType dtype) {
  const Arithmetic arithmetic = info(dtype).arithmetic;
  return arithmetic == Arithmetic::F64 || arithmetic == Arithmetic::F32;
}

bool is_integer(DType dtype) {
  const Arithmetic arithmetic = info(dtype).arithmetic;
  return arithmetic == Arithmetic::Signed || arithmetic == Arithmetic::Unsigned;
}

bool is_complex(DType dtype) { return info(dtype).arithmetic == Arithmetic::Complex; }

std::int64_t lowest_integer(DType dtype) {
  TENON_ASSERT(is_integer(dtype) || dtype == DType::Bool, "only integers have a least integer");
  if (info(dtype).arithmetic != Arithmetic::Signed) return 0;
  return std::numeric_limits<std::int64_t>::min() >> (64 - info(dtype).bits);
}

std::uint64_t highest_integer(DType dtype) {
  TENON_ASSERT(is_integer(dtype) || dtype == DType::Bool, "only integers have a greatest integer");
  if (dtype == DType::Bool) return 1;
  const int value_bits = info(dtype).bits - (info(dtype).arithmetic == Arithmetic::Signed ? 1 : 0);
  return ~std::uint64_t{0} >> (64 - value_bits);
}

double highest_finite(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return std::numeric_limits<double>::max();
    case DType::F32:
      return std::numeric_limits<float>::max();
    case DType::F16:
      return 65504.0;
    case DType::BF16:
      return 0x1.fep127;
    case DType::F8E4M3FN:
      return 448.0;
    case DType::F8E4M3FNUZ:
      return 240.0;
    case DType::F8E5M2:
    case DType::F8E5M2FNUZ:
      return 57344.0;
    case DType::F8E8M0:
      return 0x1p127;
    case DType::F4E2M1:
      return 6.0;
    default:
      break;
  }
  TENON_ASSERT(is_float(dtype), "only floats have a greatest finite value");
  return 0;
}

}  // namespace tenon::inline ir
