#pragma once

#include "ir/type.h"
#include "ops/expr.h"
#include "tenon/builder.h"

#include <optional>
#include <string_view>
#include <vector>

namespace tenon {

class Attributes;

/// True for what only the data decides: a dynamic attribute whose elements are not known yet.
bool is_unknown(const Dim& dim);
bool any_unknown(const Dims& dims);

/// `dim` clamped into the closed range of dims.
Dim clamp(const Dim& dim, const Dim& lowest, const Dim& highest);
Expr clamp(const Expr& x, const Expr& lowest, const Expr& highest);
/// A position clamped to [0, extent - 1].
Expr clamp_to_axis(const Expr& position, const Dim& extent);

/// What one axis of a slice takes: `count` elements, the first at `start`.
struct SliceSpan {
  Dim start;
  Dim count;
};
/// Resolves the bounds of a slice (negative ones count from the end, far ones are clamped). Gives
/// nothing where a symbol may be of either sign.
std::optional<SliceSpan> slice_span(const Dim& start, const Dim& end, std::int64_t step,
                                    const Dim& extent);

/// Named axes counted from the front, in the order given; 0, 1, … where none are named. Throws
/// Error for one outside the rank, named twice, or where their number is not `count`.
std::vector<std::size_t> axes_in_order(std::string_view op, const std::vector<std::int64_t>& axes,
                                       std::size_t count, std::size_t rank);

/// The coordinates of a space's own position with one axis replaced.
std::vector<Expr> with_coordinate(const Space& space, std::size_t axis, Expr coordinate);

/// The dtype in which interpolation of `x` at positions of dtype `positions` is done.
DType working_dtype(DType x, DType positions);
/// Weight of a cubic convolution (Keys, 1981) at this distance.
Expr cubic_weight(const Expr& distance, double a);

/// One node with attributes that may hold symbols.
Var call_with(std::string_view op, const std::vector<Var>& operands, Attributes attrs);
/// Zeros of a value's type; the type must be known.
Var zeros_like(Var value);

}  // namespace tenon
