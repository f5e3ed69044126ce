#pragma once

#include "expr/expr.h"
#include "ir/type.h"
#include "tenon/builder.h"

#include <optional>
#include <string_view>
#include <vector>

namespace tenon::inline ir {
class Attributes;
}

namespace tenon::inline ops {

/// Returns whether only the data determines a dim: a dynamic attribute with unknown elements.
bool is_unknown(const Dim& dim);
bool any_unknown(const Dims& dims);

/// Clamps `dim` to a closed range of dims.
Dim clamp(const Dim& dim, const Dim& lowest, const Dim& highest);
Expr clamp(const Expr& x, const Expr& lowest, const Expr& highest);
/// Clamps a position to [0, extent - 1].
Expr clamp_to_axis(const Expr& position, const Dim& extent);

/// Selection along one axis of a slice: `count` elements, the first at `start`.
struct SliceSpan {
  Dim start;
  Dim count;
};
/// Resolves the bounds of a slice (negative ones count from the end, out-of-range ones are
/// clamped). Returns nullopt if a symbol may have either sign.
std::optional<SliceSpan> slice_span(const Dim& start, const Dim& end, std::int64_t step,
                                    const Dim& extent);

/// Returns axes counted from the front, in the given order; 0, 1, … if none are named. Throws Error
/// for an axis outside the rank, a repeated axis, or a number of axes other than `count`.
std::vector<std::size_t> axes_in_order(std::string_view op, const std::vector<std::int64_t>& axes,
                                       std::size_t count, std::size_t rank);

/// Returns the space's own coordinates with one axis replaced.
std::vector<Expr> with_coordinate(const Space& space, std::size_t axis, Expr coordinate);

/// Returns the dtype for interpolation of `x` at positions of dtype `positions`.
DType working_dtype(DType x, DType positions);
/// Returns the weight of a cubic convolution (Keys, 1981) at this distance.
Expr cubic_weight(const Expr& distance, double a);

/// Appends one node with attributes that may contain symbols.
Var call_with(std::string_view op, const std::vector<Var>& operands, Attributes attrs);
/// Returns zeros of a value's type, which must be known.
Var zeros_like(Var value);

}  // namespace tenon::inline ops
