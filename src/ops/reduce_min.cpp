#include "ops/families/reduction.h"

namespace tenon::inline ops::reduce_min_op {
namespace {

void lower(const ReductionAttrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Axes axes = reduced_axes(attrs, x.rank());
  define_reduced(attrs, op, min_over(x, axes));
}

}  // namespace

TENON_DEFINE_OP(reduce_min) = reduction_op("reduce_min",
                                           "the smallest element over `axes`; NaN if there is one",
                                           lower, extreme_gradient);

}  // namespace tenon::inline ops::reduce_min_op
