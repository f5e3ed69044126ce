#pragma once

#include "ops/expr.h"
#include "ops/gradient.h"
#include "ops/op_spec.h"
#include "ops/operand_types.h"

#include <initializer_list>
#include <optional>
#include <string_view>

namespace tenon {

/// The dtype statistics are taken in: as asked, or f32, or f64 where x has that.
DType statistics_dtype(std::optional<DType> asked, DType x);

/// x brought to mean 0 and variance 1 over some axes.
struct Standardized {
  Expr mean, variance, inverse_deviation, value;
};
/// Works in x's dtype; the variance is that of the population.
Standardized standardize(const Expr& x, const Axes& axes, double epsilon);

/// A vector laid along one axis of a tensor of that rank, so that it broadcasts over the others.
Expr along_axis(const Expr& vector, std::size_t axis, std::size_t rank);
Var along_axis(Var vector, std::size_t axis, std::size_t rank);
/// Sums over all other axes, which go away.
Var sum_along_axis(Var x, std::size_t axis);

/// Asks for floats: norms are computed in them, and rounding back to integers is nobody's wish.
void require_floats(const OperandTypes& in,
                    std::initializer_list<std::string_view> operands = {"x"});
/// Asks that the operand is a vector as long as x is along `axis`.
void require_vector(const OperandTypes& in, std::string_view operand, std::size_t axis);
/// Asks that the operand broadcasts with x and does not make it larger.
void require_broadcast_to_x(const OperandTypes& in, std::string_view operand);
/// Axes from `axis` to the last; all but `axis` and the first.
Axes axes_from(std::size_t axis, std::size_t rank);
Axes axes_inside(std::size_t axis, std::size_t rank);

/// What norms over the last axes have in common.
struct TrailingNormAttrs {
  /// the first of them
  std::int64_t axis = -1;
  double epsilon = 1e-5;
  std::optional<DType> stash;
  Axes axes(std::string_view op, std::size_t rank) const {
    return axes_from(normal_axis(op, axis, rank), rank);
  }
};
std::vector<AttrField<TrailingNormAttrs>> trailing_norm_fields();

/// x standardized in the graph, for gradients.
struct StandardizedVar {
  Var inverse_deviation, value;
};
StandardizedVar standardize(Var x, const Axes& axes, double epsilon);
/// The gradient by x, where `dy` flows into the standardized value.
Var standardize_gradient(const StandardizedVar& y, const Axes& axes, Var dy);
Var mean_over(Var x, const Axes& axes);
/// What flows into a mean over `axes`, as it reaches every element of x: divided by their number.
Var share_of_mean(Var flow, Var x, const Axes& axes);

}  // namespace tenon
