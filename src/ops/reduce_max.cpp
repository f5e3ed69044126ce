#include "ops/families/reduction.h"

namespace tenon::inline ops::reduce_max_op {
namespace {

void lower(const ReductionAttrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Axes axes = reduced_axes(attrs, x.rank());
  define_reduced(attrs, op, max_over(x, axes));
}

}  // namespace

TENON_DEFINE_OP(reduce_max) = reduction_op("reduce_max",
                                           "the largest element over `axes`; NaN if there is one",
                                           lower, extreme_gradient);

}  // namespace tenon::inline ops::reduce_max_op
