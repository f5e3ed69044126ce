#pragma once

#include "frontends/onnx/external_data.h"
#include "ir/constant.h"

#include <memory>
#include <optional>

namespace onnx_schema {
class TensorProto;
class SparseTensorProto;
}  // namespace onnx_schema

namespace tenon::onnx {

/// The dtype of a TensorProto.DataType number; nothing for UNDEFINED and numbers of the future.
std::optional<DType> dtype_of(int element_type);

/// A tensor in any of ONNX's encodings. The elements stay where they are if they can: in the
/// message, which `owner` keeps alive, or in the mapped external file. Throws Error where sizes
/// disagree, before anything is allocated.
Tensor read_tensor(const onnx_schema::TensorProto& proto, std::shared_ptr<const void> owner,
                   ExternalFiles& files);
/// The same, taking the elements out of the message.
Tensor take_tensor(onnx_schema::TensorProto& proto, ExternalFiles& files);
/// The same for a message whose `field` (raw_data, float_data or double_data, by number) was taken
/// out before; `bytes` are what it held.
Tensor read_tensor(const onnx_schema::TensorProto& proto, int field,
                   std::shared_ptr<const void> owner, std::span<const std::byte> bytes);
/// A sparse tensor made dense. Throws Error where that would be absurdly larger than the file.
Constant read_sparse_tensor(const onnx_schema::SparseTensorProto& proto, ExternalFiles& files);

/// Sets data type, dims and elements; strings as string_data, all else as raw_data.
void write_tensor(const Tensor& tensor, onnx_schema::TensorProto& proto);
/// The bytes of raw_data: little-endian elements, sub-byte ones packed.
std::string packed_bytes(const Tensor& tensor);

}  // namespace tenon::onnx
