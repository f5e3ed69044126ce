#pragma once

#include "ir/tensor.h"
#include "reference/element_math.h"

#include <memory>

namespace tenon::reference {

/// Elements that an expression reads: an operand in its storage type, or an intermediate result in
/// its lane's type (text as pointers into the operands).
struct Buffer {
  Tensor tensor;
  /// i64 elements that are really `Text`
  bool holds_pointers = false;
  Shape shape;
  /// in elements, row-major
  std::vector<std::int64_t> strides;

  static Buffer of(Tensor tensor, bool holds_pointers = false);
  Buffer reshaped(Shape new_shape) const;
};

/// Copies `count` elements, `stride` apart from `offset` on, into lane-typed storage.
using Loader = void (*)(const Buffer& buffer, std::int64_t offset, std::int64_t stride,
                        std::int64_t count, void* out);
Loader loader_of(const Buffer& buffer);
Lane lane_of(const Buffer& buffer);

/// A lane-typed tensor to hold intermediate results.
Buffer make_buffer(Lane lane, Shape shape);
/// The buffer as a tensor of `dtype`: rounded to narrow floats, strings fetched.
Tensor to_tensor(const Buffer& buffer, DType dtype);

}  // namespace tenon::reference
