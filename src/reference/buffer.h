#pragma once

#include "ir/tensor.h"
#include "reference/element_math.h"

#include <memory>

namespace tenon::reference {

/// Elements that an expression reads: an operand in its storage type, or an intermediate in its
/// lane type (text as pointers into the operands).
struct Buffer {
  Tensor tensor;
  /// The i64 elements are `Text` pointers.
  bool holds_pointers = false;
  Shape shape;
  /// Row-major strides in elements.
  std::vector<std::int64_t> strides;

  static Buffer of(Tensor tensor, bool holds_pointers = false);
  Buffer reshaped(Shape new_shape) const;
};

/// Copies `count` elements with distance `stride`, starting at `offset`, into lane-typed storage.
using Loader = void (*)(const Buffer& buffer, std::int64_t offset, std::int64_t stride,
                        std::int64_t count, void* out);
Loader loader_of(const Buffer& buffer);
LaneType lane_of(const Buffer& buffer);

/// Allocates a lane-typed buffer for an intermediate.
Buffer make_buffer(LaneType lane, Shape shape);
/// Converts the buffer to a tensor of `dtype`: rounds to narrow floats, dereferences strings.
Tensor to_tensor(const Buffer& buffer, DType dtype);

}  // namespace tenon::reference
