#include "frontends/onnx/tensor_proto.h"

#include "base/error.h"
#include "base/text.h"
#include "frontends/onnx/export_node.h"
#include "frontends/onnx/schema/onnx.pb.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tenon::frontends::onnx {
namespace {

using google::protobuf::RepeatedField;
using onnx_schema::TensorProto;

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");

constexpr std::pair<int, DType> element_types[] = {
    {TensorProto::FLOAT, DType::F32},
    {TensorProto::UINT8, DType::U8},
    {TensorProto::INT8, DType::I8},
    {TensorProto::UINT16, DType::U16},
    {TensorProto::INT16, DType::I16},
    {TensorProto::INT32, DType::I32},
    {TensorProto::INT64, DType::I64},
    {TensorProto::STRING, DType::String},
    {TensorProto::BOOL, DType::Bool},
    {TensorProto::FLOAT16, DType::F16},
    {TensorProto::DOUBLE, DType::F64},
    {TensorProto::UINT32, DType::U32},
    {TensorProto::UINT64, DType::U64},
    {TensorProto::COMPLEX64, DType::C64},
    {TensorProto::COMPLEX128, DType::C128},
    {TensorProto::BFLOAT16, DType::BF16},
    {TensorProto::FLOAT8E4M3FN, DType::F8E4M3FN},
    {TensorProto::FLOAT8E4M3FNUZ, DType::F8E4M3FNUZ},
    {TensorProto::FLOAT8E5M2, DType::F8E5M2},
    {TensorProto::FLOAT8E5M2FNUZ, DType::F8E5M2FNUZ},
    {TensorProto::UINT4, DType::U4},
    {TensorProto::INT4, DType::I4},
    {TensorProto::FLOAT4E2M1, DType::F4E2M1},
    {TensorProto::FLOAT8E8M0, DType::F8E8M0},
    {TensorProto::UINT2, DType::U2},
    {TensorProto::INT2, DType::I2},
};

struct TensorHeader {
  DType dtype;
  Shape shape;
  std::uint64_t count;

  std::uint64_t bits() const { return static_cast<std::uint64_t>(info(dtype).bits); }
  std::uint64_t packed_bytes() const { return (count * bits() + 7) / 8; }
  std::string text() const {
    std::string dims;
    for (std::int64_t extent : shape) dims += concat(dims.empty() ? "" : ", ", extent);
    return concat(to_string(dtype), "[", dims, "]");
  }
};

TensorHeader header_of(const TensorProto& proto) {
  const std::optional<DType> dtype = dtype_of(proto.data_type());
  if (!dtype) {
    throw Error(
        concat("tensor: no element type has the number ", proto.data_type()),
        proto.data_type() > TensorProto::INT2 ? ErrorKind::Unsupported : ErrorKind::InvalidModel);
  }
  if (proto.has_segment()) {
    throw Error("tensor: it is split into segments", ErrorKind::Unsupported);
  }
  Shape shape(proto.dims().begin(), proto.dims().end());
  const std::int64_t count = checked_element_count(shape);
  return {*dtype, std::move(shape), static_cast<std::uint64_t>(count)};
}

Error wrong_amount(const TensorHeader& header, std::string_view field, std::uint64_t expected,
                   std::uint64_t got, std::string_view unit) {
  return Error("tensor: its data does not fill its shape")
      .expected(expected, " ", unit, " in ", field, " for ", header.text())
      .got(got, " ", unit);
}

std::int8_t sign_extended(unsigned element, int bits) {
  const auto sign = 1u << (bits - 1);
  return static_cast<std::int8_t>(static_cast<int>(element ^ sign) - static_cast<int>(sign));
}

// Unpacks 4-bit and 2-bit elements, the first in the lowest bits of its byte; `byte_at(k)` returns
// byte k.
template <class ByteAt>
Tensor unpack(const TensorHeader& header, ByteAt byte_at) {
  Tensor tensor(header.dtype, header.shape);
  const std::span<std::byte> elements = tensor.mutable_bytes();
  const int bits = info(header.dtype).bits;
  const auto per_byte = static_cast<std::size_t>(8 / bits);
  const bool is_signed = info(header.dtype).arithmetic == Arithmetic::Signed;
  const unsigned mask = (1u << bits) - 1;
  for (std::size_t k = 0; k < elements.size(); ++k) {
    const unsigned byte = std::to_integer<unsigned>(byte_at(k / per_byte));
    const unsigned element = byte >> (static_cast<unsigned>(bits) * (k % per_byte)) & mask;
    elements[k] = is_signed ? static_cast<std::byte>(sign_extended(element, bits))
                            : static_cast<std::byte>(element);
  }
  return tensor;
}

// Reads raw_data, an external file, or a field with the same memory layout.
Tensor from_bytes(const TensorHeader& header, std::string_view field,
                  std::shared_ptr<const void> owner, std::span<const std::byte> bytes) {
  if (header.dtype == DType::String) {
    throw Error(concat("tensor: strings cannot be in ", field)).expected("them in string_data");
  }
  if (bytes.size() != header.packed_bytes()) {
    throw wrong_amount(header, field, header.packed_bytes(), bytes.size(), "bytes");
  }
  if (header.bits() < 8) return unpack(header, [&](std::size_t k) { return bytes[k]; });
  const auto is_odd = [](std::byte byte) { return byte > std::byte{1}; };
  if (header.dtype == DType::Bool && std::ranges::any_of(bytes, is_odd)) {
    Tensor tensor(header.dtype, header.shape);
    std::ranges::transform(bytes, tensor.mutable_bytes().begin(),
                           [](std::byte byte) { return std::byte{byte != std::byte{0}}; });
    return tensor;
  }
  return Tensor::borrow(header.dtype, header.shape, std::move(owner), bytes);
}

// int32_data and uint64_data also hold narrower elements, one per entry.
template <class Element, class Entry>
Tensor narrowed(const TensorHeader& header, const RepeatedField<Entry>& entries) {
  Tensor tensor(header.dtype, header.shape);
  std::ranges::transform(entries, tensor.as_mutable<Element>().begin(), [&](Entry entry) {
    if (header.dtype == DType::Bool) return static_cast<Element>(entry != 0);
    return static_cast<Element>(entry);
  });
  return tensor;
}

Tensor from_int32_data(const TensorHeader& header, const RepeatedField<std::int32_t>& entries) {
  const std::uint64_t expected = header.bits() < 8 ? header.packed_bytes() : header.count;
  if (static_cast<std::uint64_t>(entries.size()) != expected) {
    throw wrong_amount(header, "int32_data", expected, static_cast<std::uint64_t>(entries.size()),
                       "entries");
  }
  if (header.bits() < 8) {
    return unpack(header, [&](std::size_t k) {
      return static_cast<std::byte>(entries.Get(static_cast<int>(k)));
    });
  }
  return header.bits() == 8 ? narrowed<std::uint8_t>(header, entries)
                            : narrowed<std::uint16_t>(header, entries);
}

Tensor from_uint64_as_u32(const TensorHeader& header, const RepeatedField<std::uint64_t>& entries) {
  if (static_cast<std::uint64_t>(entries.size()) != header.count) {
    throw wrong_amount(header, "uint64_data", header.count,
                       static_cast<std::uint64_t>(entries.size()), "entries");
  }
  return narrowed<std::uint32_t>(header, entries);
}

Tensor from_string_data(const TensorHeader& header, std::vector<std::string> strings) {
  if (strings.size() != header.count) {
    throw wrong_amount(header, "string_data", header.count, strings.size(), "entries");
  }
  return Tensor::of_strings(header.shape, std::move(strings));
}

bool has_typed_data(const TensorProto& proto) {
  return proto.float_data_size() + proto.int32_data_size() + proto.int64_data_size() +
             proto.double_data_size() + proto.uint64_data_size() + proto.string_data_size() >
         0;
}

bool is_in_raw_data(const TensorProto& proto) {
  return !proto.raw_data().empty() || (proto.has_raw_data() && !has_typed_data(proto));
}

template <class Entry>
std::span<const std::byte> bytes_of(const RepeatedField<Entry>& entries) {
  return std::as_bytes(std::span(entries.data(), static_cast<std::size_t>(entries.size())));
}

// Reads elements whose field has their memory layout; nullopt for other element types.
std::optional<Tensor> from_matching_field(const TensorHeader& header, const TensorProto& proto,
                                          const std::shared_ptr<const void>& owner) {
  const auto borrow = [&](std::string_view field, const auto& entries) {
    return from_bytes(header, field, owner, bytes_of(entries));
  };
  switch (header.dtype) {
    case DType::F32:
    case DType::C64:
      return borrow("float_data", proto.float_data());
    case DType::F64:
    case DType::C128:
      return borrow("double_data", proto.double_data());
    case DType::I32:
      return borrow("int32_data", proto.int32_data());
    case DType::I64:
      return borrow("int64_data", proto.int64_data());
    case DType::U64:
      return borrow("uint64_data", proto.uint64_data());
    default:
      return std::nullopt;
  }
}

Tensor from_other_field(const TensorHeader& header, const TensorProto& proto) {
  if (header.dtype == DType::U32) return from_uint64_as_u32(header, proto.uint64_data());
  return from_int32_data(header, proto.int32_data());
}

Tensor from_external(const TensorHeader& header, const TensorProto& proto, ExternalFiles& files) {
  if (header.dtype == DType::String) throw Error("tensor: strings cannot be external data");
  ExternalFiles::Piece piece = files.bytes_of(proto);
  bool has_length = false;
  for (const auto& entry : proto.external_data()) has_length |= entry.key() == "length";
  // Without a length the tensor ends with its shape.
  if (!has_length && piece.bytes.size() > header.packed_bytes()) {
    piece.bytes = piece.bytes.first(header.packed_bytes());
  }
  return from_bytes(header, "external data", std::move(piece.file), piece.bytes);
}

}  // namespace

std::optional<DType> dtype_of(int element_type) {
  for (const auto& [number, dtype] : element_types) {
    if (number == element_type) return dtype;
  }
  return std::nullopt;
}

int onnx_element_type(DType dtype) {
  for (const auto& [number, known] : element_types) {
    if (known == dtype) return number;
  }
  throw InternalError("onnx_element_type", "every dtype has an ONNX number", __FILE__, __LINE__);
}

Tensor read_tensor(const TensorProto& proto, std::shared_ptr<const void> owner,
                   ExternalFiles& files) {
  const TensorHeader header = header_of(proto);
  if (proto.data_location() == TensorProto::EXTERNAL) return from_external(header, proto, files);
  if (is_in_raw_data(proto)) {
    return from_bytes(header, "raw_data", std::move(owner),
                      std::as_bytes(std::span(proto.raw_data())));
  }
  if (header.dtype == DType::String) {
    return from_string_data(header, {proto.string_data().begin(), proto.string_data().end()});
  }
  std::optional<Tensor> tensor = from_matching_field(header, proto, owner);
  return tensor ? *std::move(tensor) : from_other_field(header, proto);
}

Tensor take_tensor(TensorProto& proto, ExternalFiles& files) {
  auto owned = std::make_shared<TensorProto>();
  owned->Swap(&proto);
  return read_tensor(*owned, owned, files);
}

Tensor read_tensor(const TensorProto& proto, int field, std::shared_ptr<const void> owner,
                   std::span<const std::byte> bytes) {
  const TensorHeader header = header_of(proto);
  if (proto.data_location() == TensorProto::EXTERNAL) {
    throw Error("tensor: its data is both in the model and external");
  }
  if (field == TensorProto::kRawDataFieldNumber) {
    return from_bytes(header, "raw_data", std::move(owner), bytes);
  }
  // Only these fields have the layout of raw_data.
  const bool is_double = field == TensorProto::kDoubleDataFieldNumber;
  const std::string_view name = is_double ? "double_data" : "float_data";
  const DType real = is_double ? DType::F64 : DType::F32;
  const DType complex = is_double ? DType::C128 : DType::C64;
  if (header.dtype != real && header.dtype != complex) {
    throw Error("tensor: its data is in the wrong field").got(header.text(), " in ", name);
  }
  return from_bytes(header, name, std::move(owner), bytes);
}

Constant read_sparse_tensor(const onnx_schema::SparseTensorProto& proto, ExternalFiles& files) {
  // Refuses dense tensors that are far larger than their file.
  constexpr std::uint64_t kMaxDenseBytes = std::uint64_t{256} << 20;
  constexpr std::uint64_t kMaxGrowth = 64;

  const Shape shape(proto.dims().begin(), proto.dims().end());
  const auto count = static_cast<std::uint64_t>(checked_element_count(shape));
  const Tensor values = read_tensor(proto.values(), nullptr, files);
  const Tensor indices = read_tensor(proto.indices(), nullptr, files);
  const std::size_t width = info(values.dtype()).storage_bytes;
  if (values.dtype() == DType::String) {
    throw Error("sparse tensor: its elements are strings", ErrorKind::Unsupported);
  }
  const auto stored = static_cast<std::uint64_t>(values.size());
  const bool is_flat = indices.rank() == 1;
  const std::uint64_t per_index = is_flat ? 1 : shape.size();
  if (values.rank() != 1 || indices.dtype() != DType::I64 || indices.rank() > 2 ||
      static_cast<std::uint64_t>(indices.size()) != stored * per_index) {
    throw Error("sparse tensor: values and indices do not fit together")
        .expected("values[n] and i64 indices[n] or [n, rank]")
        .got("values: ", to_string(values.type()), ", indices: ", to_string(indices.type()));
  }
  if (stored == 0) return Constant::splat(Tensor(values.dtype(), {}), shape);
  if (count * width > std::max(kMaxDenseBytes, kMaxGrowth * stored * width)) {
    throw Error("sparse tensor: too large to be made dense", ErrorKind::Unsupported)
        .expected("at most ", format_bytes(kMaxDenseBytes), " or ", kMaxGrowth,
                  " times its elements")
        .got(format_bytes(count * width));
  }
  Tensor dense(values.dtype(), shape);
  const std::span<std::byte> to = dense.mutable_bytes();
  const std::span<const std::int64_t> at = indices.as<std::int64_t>();
  for (std::uint64_t k = 0; k < stored; ++k) {
    std::int64_t flat = is_flat ? at[k] : 0;
    bool is_inside = true;
    for (std::size_t axis = 0; !is_flat && axis < shape.size(); ++axis) {
      const std::int64_t coordinate = at[k * shape.size() + axis];
      is_inside &= coordinate >= 0 && coordinate < shape[axis];
      if (is_inside) flat = flat * shape[axis] + coordinate;
    }
    if (!is_inside || flat < 0 || static_cast<std::uint64_t>(flat) >= count) {
      throw Error("sparse tensor: an index lies outside its shape").got("element ", k);
    }
    std::memcpy(&to[static_cast<std::size_t>(flat) * width], &values.bytes()[k * width], width);
  }
  return dense;
}

std::string packed_bytes(const Tensor& tensor) {
  const std::span<const std::byte> elements = tensor.bytes();
  const int bits = info(tensor.dtype()).bits;
  if (bits >= 8) return {reinterpret_cast<const char*>(elements.data()), elements.size()};
  const auto per_byte = static_cast<std::size_t>(8 / bits);
  const unsigned mask = (1u << bits) - 1;
  std::string packed((elements.size() + per_byte - 1) / per_byte, '\0');
  for (std::size_t k = 0; k < elements.size(); ++k) {
    const std::size_t shift = static_cast<std::size_t>(bits) * (k % per_byte);
    const unsigned element = (std::to_integer<unsigned>(elements[k]) & mask) << shift;
    char& byte = packed[k / per_byte];
    byte = static_cast<char>(static_cast<unsigned char>(byte) | element);
  }
  return packed;
}

void write_tensor(const Tensor& tensor, TensorProto& proto) {
  proto.set_data_type(onnx_element_type(tensor.dtype()));
  proto.mutable_dims()->Assign(tensor.shape().begin(), tensor.shape().end());
  if (tensor.dtype() == DType::String) {
    for (const std::string& text : tensor.strings()) proto.add_string_data(text);
  } else {
    proto.set_raw_data(packed_bytes(tensor));
  }
}

}  // namespace tenon::frontends::onnx
