#pragma once

#include "expr/lowering.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"

#include <string>
#include <vector>

namespace tenon::inline ops {

/// Attributes of ops that reduce whole axes.
struct ReductionAttrs {
  /// Empty means all axes, or an identity if `noop_if_empty`.
  std::vector<std::int64_t> axes;
  /// Keeps reduced axes with extent 1.
  bool keep_axes = true;
  bool noop_if_empty = false;
};

using ReductionLower = void (*)(const ReductionAttrs&, Lowering&);

/// Defines an op with operand x, result y and the attributes above.
OpSpec<ReductionAttrs> reduction_op(std::string name, std::string summary, ReductionLower lower,
                                    GradientRule<ReductionAttrs> gradient);

/// Returns the reduced axes, counted from the front and sorted.
Axes reduced_axes(const ReductionAttrs& attrs, std::size_t rank);
/// Converts to the computation dtype: integers to f64, others unchanged.
Expr as_real(const Expr& x);
/// Defines y by its value with reduced axes kept.
void define_reduced(const ReductionAttrs& attrs, Lowering& op, const Expr& kept);

/// Restores the reduced axes (extent 1) of an operand of the gradient.
Var with_kept_axes(const ReductionAttrs& attrs, Gradient& op, Var reduced);
/// Appends an op of the family over the same axes, with kept axes.
Var reduce_likewise(const ReductionAttrs& attrs, Gradient& op, std::string_view name, Var x);
/// Gradient of max and min: distributes equally over the elements that equal the result.
void extreme_gradient(const ReductionAttrs& attrs, Gradient& op);

}  // namespace tenon::inline ops
