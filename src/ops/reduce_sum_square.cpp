#include "ops/families/reduction.h"

namespace tenon::inline ops::reduce_sum_square_op {
namespace {

void lower(const ReductionAttrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Axes axes = reduced_axes(attrs, x.rank());
  define_reduced(attrs, op, sum_over(x * x, axes));
}

void gradient(const ReductionAttrs& attrs, Gradient& op) {
  const Var dy = with_kept_axes(attrs, op, op.upstream("y"));
  op.add("x", dy * op.operand("x") * 2.0);
}

}  // namespace

TENON_DEFINE_OP(reduce_sum_square) = reduction_op("reduce_sum_square",
                                                  "the sum of squares over `axes`", lower,
                                                  gradient);

}  // namespace tenon::inline ops::reduce_sum_square_op
