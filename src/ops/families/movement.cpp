#include "ops/families/movement.h"

#include "base/error.h"
#include "ir/graph.h"
#include "ops/definition/operand_types.h"

#include <algorithm>

namespace tenon::inline ops {
namespace {

// Exporters write the extremes of 32 or 64 bits for "to the end".
constexpr std::int64_t kFar = INT32_MAX;

std::optional<Dim> slice_bound(const Dim& bound, const Dim& extent, const Dim& lowest,
                               const Dim& highest) {
  if (bound.is_constant() && bound.constant() >= kFar) return highest;
  if (bound.is_constant() && bound.constant() <= -kFar) return lowest;
  if (bound == Dim(-1) && highest == extent - 1) return highest;  // clamping is unnecessary
  if (is_unknown(bound)) return std::nullopt;
  if (bound.range().lo >= 0) return clamp(bound, lowest, highest);
  if (bound.range().hi < 0) return max(bound + extent, lowest);
  return std::nullopt;
}

}  // namespace

bool is_unknown(const Dim& dim) {
  if (dim.is_constant()) return false;
  SymbolRanges symbols;
  dim.collect_symbols(symbols);
  return std::any_of(symbols.begin(), symbols.end(),
                     [](const auto& symbol) { return symbol.first.starts_with('?'); });
}

bool any_unknown(const Dims& dims) { return std::any_of(dims.begin(), dims.end(), is_unknown); }

Dim clamp(const Dim& dim, const Dim& lowest, const Dim& highest) {
  return max(min(dim, highest), lowest);
}

Expr clamp(const Expr& x, const Expr& lowest, const Expr& highest) {
  return max(min(x, highest), lowest);
}

Expr clamp_to_axis(const Expr& position, const Dim& extent) {
  return clamp(position, integer(0), extent_expr(extent - 1));
}

std::optional<SliceSpan> slice_span(const Dim& start, const Dim& end, std::int64_t step,
                                    const Dim& extent) {
  if (extent == Dim(0)) return SliceSpan{0, 0};
  const bool is_forward = step > 0;
  const Dim highest = is_forward ? extent : extent - 1;
  const std::optional<Dim> first = slice_bound(start, extent, 0, highest);
  const std::optional<Dim> last = slice_bound(end, extent, is_forward ? 0 : -1, highest);
  if (!first || !last) return std::nullopt;
  const Dim count = is_forward ? ceil_div(*last - *first, step) : ceil_div(*first - *last, -step);
  return SliceSpan{*first, max(count, 0)};
}

std::vector<std::size_t> axes_in_order(std::string_view op, const std::vector<std::int64_t>& axes,
                                       std::size_t count, std::size_t rank) {
  std::vector<std::int64_t> given = axes;
  if (axes.empty()) {
    for (std::size_t k = 0; k < count; ++k) given.push_back(static_cast<std::int64_t>(k));
  }
  if (given.size() != count) {
    throw Error(concat(op, ": the number of axes does not fit"))
        .expected(count, " axes")
        .got(given.size());
  }
  if (!given.empty()) normal_axes(op, given, rank);  // refuses repeats
  std::vector<std::size_t> order;
  for (std::int64_t axis : given) order.push_back(normal_axis(op, axis, rank));
  return order;
}

std::vector<Expr> with_coordinate(const Space& space, std::size_t axis, Expr coordinate) {
  std::vector<Expr> coordinates = space.indices();
  coordinates[axis] = std::move(coordinate);
  return coordinates;
}

DType working_dtype(DType x, DType positions) {
  return x == DType::F64 || (positions == DType::F64 && is_float(x)) ? DType::F64 : DType::F32;
}

Expr cubic_weight(const Expr& distance, double a) {
  const Expr t = abs(distance);
  const Expr near = ((a + 2) * t - (a + 3)) * t * t + 1.0;
  const Expr far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
  return select(t <= 1.0, near, select(t < 2.0, far, 0.0));
}

Var call_with(std::string_view op, const std::vector<Var>& operands, Attributes attrs) {
  return operands.front().builder().call_all(op, operands, std::move(attrs), {""}).front();
}

Var zeros_like(Var value) {
  const TensorType type = value.builder().type(value).tensor();
  const Var zero = value.builder().constant(Tensor::scalar(type.dtype, 0));
  return call_with("expand", {zero}, {{"shape", type.dims}});
}

}  // namespace tenon::inline ops
