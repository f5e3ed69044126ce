#include "ops/families/tensor_parts.h"

#include "base/error.h"

#include <algorithm>
#include <cstring>

namespace tenon::inline ops {

Rows rows_around(const Shape& shape, std::size_t axis) {
  Rows rows;
  for (std::size_t k = 0; k < axis; ++k) rows.count *= shape[k];
  for (std::size_t k = axis + 1; k < shape.size(); ++k) rows.inner *= shape[k];
  return rows;
}

void copy_elements(Tensor& to, std::int64_t to_index, const Tensor& from, std::int64_t from_index,
                   std::int64_t count) {
  if (count == 0) return;
  if (to.dtype() == DType::String) {
    const auto source = from.strings().begin() + from_index;
    std::copy(source, source + count, to.mutable_strings().begin() + to_index);
    return;
  }
  const auto bytes = static_cast<std::int64_t>(info(to.dtype()).storage_bytes);
  std::memcpy(to.mutable_bytes().data() + to_index * bytes,
              from.bytes().data() + from_index * bytes, static_cast<std::size_t>(count * bytes));
}

Tensor slice_of(const Tensor& x, std::size_t axis, std::int64_t start, std::int64_t count) {
  TENON_ASSERT(axis < x.rank() && start >= 0 && count >= 0 && start + count <= x.shape()[axis],
               "the slice lies inside");
  Shape shape = x.shape();
  const std::int64_t extent = shape[axis];
  shape[axis] = count;
  Tensor part(x.dtype(), shape);
  const Rows rows = rows_around(shape, axis);
  for (std::int64_t row = 0; row < rows.count; ++row) {
    copy_elements(part, row * count * rows.inner, x, (row * extent + start) * rows.inner,
                  count * rows.inner);
  }
  return part;
}

Tensor slice_at(const Tensor& x, std::size_t axis, std::int64_t position) {
  Shape shape = x.shape();
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  return slice_of(x, axis, position, 1).reshaped(std::move(shape));
}

Tensor join_along(std::string_view op, const std::vector<Tensor>& parts, std::size_t axis) {
  TENON_ASSERT(!parts.empty() && axis < parts.front().rank(), "there is something to join");
  Shape shape = parts.front().shape();
  shape[axis] = 0;
  for (const Tensor& part : parts) {
    Shape others = part.shape();
    if (others.size() == shape.size()) others[axis] = shape[axis];
    if (others != shape || part.dtype() != parts.front().dtype()) {
      throw Error(concat(op, ": tensors to be joined do not fit together"))
          .expected("one element type, and equal extents but for axis ", axis)
          .got(parts.front().type(), " and ", part.type());
    }
    shape[axis] += part.shape()[axis];
  }
  Tensor joined(parts.front().dtype(), shape);
  const Rows rows = rows_around(shape, axis);
  std::int64_t start = 0;
  for (const Tensor& part : parts) {
    const std::int64_t width = part.shape()[axis] * rows.inner;
    for (std::int64_t row = 0; row < rows.count; ++row) {
      copy_elements(joined, (row * shape[axis] + start) * rows.inner, part, row * width, width);
    }
    start += part.shape()[axis];
  }
  return joined;
}

Tensor stack_along(std::string_view op, const std::vector<Tensor>& parts, std::size_t axis) {
  std::vector<Tensor> widened;
  for (const Tensor& part : parts) {
    if (axis > part.rank()) {  // within the first part's rank, so another part's rank differs
      throw Error(concat(op, ": tensors to be stacked differ in rank"))
          .got(parts.front().type(), " and ", part.type());
    }
    Shape shape = part.shape();
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), 1);
    widened.push_back(part.reshaped(std::move(shape)));
  }
  return join_along(op, widened, axis);
}

void require_stack_memory(const Tensor& part, std::int64_t count) {
  Shape shape = part.shape();
  shape.insert(shape.begin(), count);
  const Tensor untouched(part.dtype(), std::move(shape));
}

}  // namespace tenon::inline ops
