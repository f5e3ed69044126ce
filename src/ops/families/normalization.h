#pragma once

#include "expr/expr.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/operand_types.h"

#include <initializer_list>
#include <optional>
#include <string_view>

namespace tenon::inline ops {

/// Returns the dtype of the statistics: as requested, else f64 for f64 and f32 otherwise.
DType statistics_dtype(std::optional<DType> asked, DType x);

/// x normalized to mean 0 and variance 1 over some axes.
struct Standardized {
  Expr mean, variance, inverse_deviation, value;
};
/// Computes in x's dtype, with the population variance.
Standardized standardize(const Expr& x, const Axes& axes, double epsilon);

/// Reshapes a vector to run along one axis of a tensor of that rank, so that it broadcasts over the
/// others.
Expr along_axis(const Expr& vector, std::size_t axis, std::size_t rank);
Var along_axis(Var vector, std::size_t axis, std::size_t rank);
/// Sums over all other axes and drops them.
Var sum_along_axis(Var x, std::size_t axis);

/// Requires floats: norms are real-valued, and rounding back to integers would be useless.
void require_floats(const OperandTypes& in,
                    std::initializer_list<std::string_view> operands = {"x"});
/// Requires a vector with the extent of x along `axis`.
void require_vector(const OperandTypes& in, std::string_view operand, std::size_t axis);
/// Requires that the operand broadcasts to the shape of x.
void require_broadcast_to_x(const OperandTypes& in, std::string_view operand);
/// Returns the axes from `axis` to the last; all axes but `axis` and the first.
Axes axes_from(std::size_t axis, std::size_t rank);
Axes axes_inside(std::size_t axis, std::size_t rank);

/// Attributes of norms over the last axes.
struct TrailingNormAttrs {
  /// First normalized axis.
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
/// Returns the gradient of x, given the gradient `dy` of the standardized value.
Var standardize_gradient(const StandardizedVar& y, const Axes& axes, Var dy);
Var mean_over(Var x, const Axes& axes);
/// Distributes the gradient of a mean over `axes` to every element of x: divides it by their
/// number.
Var share_of_mean(Var flow, Var x, const Axes& axes);

}  // namespace tenon::inline ops
