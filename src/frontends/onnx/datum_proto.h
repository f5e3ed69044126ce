#pragma once

#include "ops/evaluation.h"

#include <cstddef>
#include <span>
#include <string>

namespace tenon::onnx {

/// Reads a serialized TensorProto, SequenceProto or OptionalProto, as the type says; a tensor where
/// the type is Unknown. This is what the `.pb` files of ONNX's test data hold. Throws Error for
/// bytes that are none.
Datum read_datum(std::span<const std::byte> bytes, const Type& type);
Datum read_datum_file(const std::string& path, const Type& type);

/// The other way round.
std::string write_datum(const Datum& datum);

}  // namespace tenon::onnx
