#include "ops/families/local_response.h"

#include "expr/layout_access.h"

#include <algorithm>

namespace tenon::inline ops {

std::vector<AttrField<LocalResponseAttrs>> local_response_fields() {
  return {{"size", &LocalResponseAttrs::size, required},
          {"alpha", &LocalResponseAttrs::alpha},
          {"beta", &LocalResponseAttrs::beta},
          {"bias", &LocalResponseAttrs::bias}};
}

void require_local_response(std::string_view op, const LocalResponseAttrs& attrs,
                            const TensorType& x) {
  if (attrs.size < 1)
    throw Error(concat(op, ": attribute 'size' must be at least 1")).got(attrs.size);
  if (AxisMap(op, x, "NC").rank() < 2) {
    throw Error(concat(op, ": the image has no axis of channels")).expected("x: [N, C, …]").got(x);
  }
}

Expr sum_of_neighbours(const Expr& x, const TensorType& type, std::int64_t size,
                       NeighbourSide side) {
  const AxisMap map("lrn", type, "NC");
  const std::int64_t before = (size - 1) / 2;
  std::int64_t first = side == NeighbourSide::Window ? -before : before + 1 - size;
  std::int64_t last = first + size - 1;
  const Dims logical = map.logical_dims(type.dims);
  if (logical[1].is_constant()) {  // bounds the window by the channel count
    const std::int64_t farthest = std::max<std::int64_t>(logical[1].constant() - 1, 0);
    first = std::max(first, -farthest);
    last = std::min(last, farthest);
  }
  Dims dims;
  const std::vector<AxisLoops> loops = map.loops(dims, logical);
  const auto window_axis = static_cast<std::int64_t>(dims.size());
  dims.push_back(last - first + 1);
  const Space space(std::move(dims));
  std::vector<LogicalIndex> at;
  for (const AxisLoops& loop : loops) at.push_back(loop.index(space));
  at[1] = at[1].whole + space[static_cast<std::size_t>(window_axis)] + Dim(first);
  return sum_out(x.at_or(map.coordinates(at), 0), {window_axis});
}

Expr local_scale(const LocalResponseAttrs& attrs, const Expr& x, const TensorType& type) {
  const Expr squares = sum_of_neighbours(x * x, type, attrs.size, NeighbourSide::Window);
  return attrs.bias + squares * (attrs.alpha / static_cast<double>(attrs.size));
}

}  // namespace tenon::inline ops
