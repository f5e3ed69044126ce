#include "documents/relay/types.h"

#include "base/error.h"

#include <array>

namespace tenon::documents::relay {
namespace {

struct Name {
  DType dtype;
  std::string_view text;
};

constexpr std::array kNames = {
    Name{DType::F64, "float64"},
    Name{DType::F32, "float32"},
    Name{DType::F16, "float16"},
    Name{DType::BF16, "bfloat16"},
    Name{DType::I64, "int64"},
    Name{DType::I32, "int32"},
    Name{DType::I16, "int16"},
    Name{DType::I8, "int8"},
    Name{DType::I4, "int4"},
    Name{DType::U64, "uint64"},
    Name{DType::U32, "uint32"},
    Name{DType::U16, "uint16"},
    Name{DType::U8, "uint8"},
    Name{DType::U4, "uint4"},
    Name{DType::Bool, "bool"},
    // Names of other systems for types that TVM lacked at that time.
    Name{DType::F8E4M3FN, "float8_e4m3fn"},
    Name{DType::F8E5M2, "float8_e5m2"},
    Name{DType::F8E4M3FNUZ, "float8_e4m3fnuz"},
    Name{DType::F8E5M2FNUZ, "float8_e5m2fnuz"},
    Name{DType::F8E8M0, "float8_e8m0fnu"},
    Name{DType::F4E2M1, "float4_e2m1fn"},
    Name{DType::I2, "int2"},
    Name{DType::U2, "uint2"},
    Name{DType::C64, "complex64"},
    Name{DType::C128, "complex128"},
};

}  // namespace

std::string dtype_name(DType dtype) {
  for (const Name& name : kNames) {
    if (name.dtype == dtype) return std::string(name.text);
  }
  return "";
}

std::optional<DType> to_dtype(std::string_view text) {
  if (text == "uint1") return DType::Bool;
  // Without a width they have 32 bits.
  if (text == "int") return DType::I32;
  if (text == "uint") return DType::U32;
  if (text == "float") return DType::F32;
  for (const Name& name : kNames) {
    if (name.text == text) return name.dtype;
  }
  return std::nullopt;
}

RelayType to_relay(const TensorType& type) {
  RelayType relay;
  relay.dtype = dtype_name(type.dtype);
  for (const Dim& dim : type.dims)
    relay.dims.push_back(dim.value().value_or(RelayType::kAnyExtent));
  return relay;
}

TensorType from_relay(const RelayType& type, const std::string& name) {
  TensorType tensor{to_dtype(type.dtype).value_or(DType::F32), {}, {}};
  for (std::size_t k = 0; k < type.dims.size(); ++k) {
    const std::int64_t extent = type.dims[k];
    tensor.dims.push_back(extent == RelayType::kAnyExtent ? Dim::symbol(concat(name, "_", k))
                                                          : Dim(extent));
  }
  return tensor;
}

}  // namespace tenon::documents::relay
