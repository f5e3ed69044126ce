#pragma once

#include "ir/tensor.h"

#include <string_view>
#include <vector>

namespace tenon {

/// Copies elements between tensors of one dtype.
void copy_elements(Tensor& to, std::int64_t to_index, const Tensor& from, std::int64_t from_index,
                   std::int64_t count = 1);

/// A tensor as rows, one for each position before an axis, and the elements of one position after
/// it.
struct Rows {
  std::int64_t count = 1, inner = 1;
};
Rows rows_around(const Shape& shape, std::size_t axis);

/// `count` positions of an axis, from `start` on. Asks that they lie inside.
Tensor slice_of(const Tensor& x, std::size_t axis, std::int64_t start, std::int64_t count);
/// One position of an axis, which goes.
Tensor slice_at(const Tensor& x, std::size_t axis, std::int64_t position);
/// At least one part, end to end along an axis. Throws Error, naming the op, if they do not fit.
Tensor join_along(std::string_view op, const std::vector<Tensor>& parts, std::size_t axis);
/// At least one part of one shape, side by side along a new axis. Throws Error likewise.
Tensor stack_along(std::string_view op, const std::vector<Tensor>& parts, std::size_t axis);

}  // namespace tenon
