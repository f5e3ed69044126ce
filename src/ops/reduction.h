#pragma once

#include "ops/gradient.h"
#include "ops/lowering.h"
#include "ops/op_spec.h"

#include <string>
#include <vector>

namespace tenon {

/// What the ops that fold whole axes have in common.
struct ReductionAttrs {
  /// empty: all, or none if `noop_if_empty`
  std::vector<std::int64_t> axes;
  /// reduced axes stay, with extent 1
  bool keep_axes = true;
  bool noop_if_empty = false;
};

using ReductionLower = void (*)(const ReductionAttrs&, Lowering&);

/// The op of that name: operand x, result y, the attributes above.
OpSpec<ReductionAttrs> reduction_op(std::string name, std::string summary, ReductionLower lower,
                                    GradientRule<ReductionAttrs> gradient);

/// The axes that are folded, counted from the front and sorted.
Axes reduced_axes(const ReductionAttrs& attrs, std::size_t rank);
/// Where the work is done: integers leave the reals through f64, all else in their own dtype.
Expr as_real(const Expr& x);
/// Defines y by its value with reduced axes kept.
void define_reduced(const ReductionAttrs& attrs, Lowering& op, const Expr& kept);

/// One operand of a reduction's gradient with its reduced axes (extent 1) put back.
Var with_kept_axes(const ReductionAttrs& attrs, Gradient& op, Var reduced);
/// Any op of the family over the same axes, with these kept.
Var reduce_likewise(const ReductionAttrs& attrs, Gradient& op, std::string_view name, Var x);
/// Shared by max and min: what flows in goes to the elements that equal the result, in equal parts.
void extreme_gradient(const ReductionAttrs& attrs, Gradient& op);

}  // namespace tenon
