#pragma once

#include "frontends/onnx/external_data.h"
#include "ir/constant.h"

#include <memory>
#include <optional>

namespace onnx_schema {
class TensorProto;
class SparseTensorProto;
}  // namespace onnx_schema

namespace tenon::frontends::onnx {

/// Returns the dtype of a TensorProto.DataType number; nullopt for UNDEFINED and unknown numbers.
std::optional<DType> dtype_of(int element_type);

/// Reads a tensor in any of ONNX's encodings. Elements are not copied if possible: they stay in the
/// message, which `owner` keeps alive, or in the mapped external file. Throws Error for
/// inconsistent sizes, before any allocation.
Tensor read_tensor(const onnx_schema::TensorProto& proto, std::shared_ptr<const void> owner,
                   ExternalFiles& files);
/// Reads a tensor and moves the elements out of the message.
Tensor take_tensor(onnx_schema::TensorProto& proto, ExternalFiles& files);
/// Reads a tensor whose `field` (raw_data, float_data or double_data, by number) was removed from
/// the message before; `bytes` are its contents.
Tensor read_tensor(const onnx_schema::TensorProto& proto, int field,
                   std::shared_ptr<const void> owner, std::span<const std::byte> bytes);
/// Makes a sparse tensor dense. Throws Error if that would be out of proportion to the file.
Constant read_sparse_tensor(const onnx_schema::SparseTensorProto& proto, ExternalFiles& files);

/// Sets data type, dims and elements; strings as string_data, all else as raw_data.
void write_tensor(const Tensor& tensor, onnx_schema::TensorProto& proto);
/// Returns the bytes of raw_data: little-endian elements, sub-byte ones packed.
std::string packed_bytes(const Tensor& tensor);

}  // namespace tenon::frontends::onnx
