#include "ops/families/reduction.h"

namespace tenon::inline ops::reduce_sum_op {
namespace {

void lower(const ReductionAttrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Axes axes = reduced_axes(attrs, x.rank());
  define_reduced(attrs, op, sum_over(x, axes));
}

void gradient(const ReductionAttrs& attrs, Gradient& op) {
  op.add("x", with_kept_axes(attrs, op, op.upstream("y")));
}

}  // namespace

TENON_DEFINE_OP(reduce_sum) = reduction_op("reduce_sum", "the sum over `axes`", lower, gradient);

}  // namespace tenon::inline ops::reduce_sum_op
