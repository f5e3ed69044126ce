#include "ops/families/matrices.h"

#include "base/error.h"

#include <utility>

namespace tenon::inline ops {

Var with_last_axes_swapped(Builder& build, Var matrices) {
  const std::size_t rank = build.rank(matrices);
  Attr::Integers perm;
  for (std::size_t axis = 0; axis < rank; ++axis) perm.push_back(static_cast<std::int64_t>(axis));
  std::swap(perm[rank - 1], perm[rank - 2]);
  return build.call("transpose", {matrices}, {{"perm", perm}});
}

std::int64_t square_size(std::string_view op, const Tensor& matrices) {
  const Shape& shape = matrices.shape();
  const std::int64_t size = shape.at(shape.size() - 1);
  if (shape.at(shape.size() - 2) != size) {
    throw Error(concat(op, ": the last two axes must span square matrices")).got(matrices.type());
  }
  return size;
}

}  // namespace tenon::inline ops
