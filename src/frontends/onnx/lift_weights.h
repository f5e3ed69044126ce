#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tenon::frontends::onnx {

/// Elements of a large initializer, which stay in the file.
struct LiftedWeight {
  /// its position in the graph
  std::size_t initializer = 0;
  /// of TensorProto: raw_data, float_data or double_data
  int field = 0;
  std::uint64_t offset = 0, size = 0;
};

/// A serialized model without the elements of its large initializers.
struct ModelSkeleton {
  std::string message;
  /// by position of the initializer, ascending
  std::vector<LiftedWeight> weights;
};

/// Parses a serialized model without its large weights. Protobuf would copy them through strings
/// that grow by doubling; instead each is read once on demand, into memory of its size. Returns
/// nullopt for malformed bytes, for which protobuf reports the error.
std::optional<ModelSkeleton> lift_weights(std::span<const std::byte> model);

}  // namespace tenon::frontends::onnx
