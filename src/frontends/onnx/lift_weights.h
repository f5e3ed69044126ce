#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tenon::onnx {

/// The elements of a large initializer, left in the file.
struct LiftedWeight {
  /// its position in the graph
  std::size_t initializer = 0;
  /// of TensorProto: raw_data, float_data or double_data
  int field = 0;
  std::uint64_t offset = 0, size = 0;
};

/// A model's message without the elements of its large initializers.
struct ModelSkeleton {
  std::string message;
  /// by position of the initializer, ascending
  std::vector<LiftedWeight> weights;
};

/// Walks a serialized model and leaves out what the weights take. Protobuf would copy them through
/// strings that grow by doubling; so each is read once, into memory of its size, when it is wanted.
/// Nothing if the bytes are not a well-formed message: then protobuf should say so.
std::optional<ModelSkeleton> lift_weights(std::span<const std::byte> model);

}  // namespace tenon::onnx
