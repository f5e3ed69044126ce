#pragma once

#include "ops/definition/evaluation.h"

#include <cstddef>
#include <span>
#include <string>

namespace tenon::frontends::onnx {

/// Reads a serialized TensorProto, SequenceProto or OptionalProto according to the type; a tensor
/// for an Unknown type. These are the `.pb` files of ONNX's test data. Throws Error for malformed
/// bytes.
Datum read_datum(std::span<const std::byte> bytes, const Type& type);
Datum read_datum_file(const std::string& path, const Type& type);

/// Serializes a datum.
std::string write_datum(const Datum& datum);

}  // namespace tenon::frontends::onnx
