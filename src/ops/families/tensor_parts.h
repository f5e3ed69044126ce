#pragma once

#include "ir/tensor.h"

#include <string_view>
#include <vector>

namespace tenon::inline ops {

/// Copies elements between tensors of one dtype.
void copy_elements(Tensor& to, std::int64_t to_index, const Tensor& from, std::int64_t from_index,
                   std::int64_t count = 1);

/// View of a tensor as rows, one per position before an axis, with the element count after the
/// axis.
struct Rows {
  std::int64_t count = 1, inner = 1;
};
Rows rows_around(const Shape& shape, std::size_t axis);

/// Returns `count` positions of an axis from `start`. Requires that they lie inside.
Tensor slice_of(const Tensor& x, std::size_t axis, std::int64_t start, std::int64_t count);
/// Returns one position of an axis and drops the axis.
Tensor slice_at(const Tensor& x, std::size_t axis, std::int64_t position);
/// Concatenates at least one part along an axis. Throws Error, naming the op, if they do not fit.
Tensor join_along(std::string_view op, const std::vector<Tensor>& parts, std::size_t axis);
/// Stacks at least one part of equal shape along a new axis. Throws Error like `join_along`.
Tensor stack_along(std::string_view op, const std::vector<Tensor>& parts, std::size_t axis);
/// Throws Error (OutOfMemory) if no memory can hold `count` such parts. For loops of a known
/// length, before all parts are computed.
void require_stack_memory(const Tensor& part, std::int64_t count);

}  // namespace tenon::inline ops
