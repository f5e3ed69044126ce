#include "ops/families/reduction.h"

namespace tenon::inline ops::reduce_l2_op {
namespace {

void lower(const ReductionAttrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Axes axes = reduced_axes(attrs, x.rank());
  define_reduced(attrs, op, sqrt(sum_over(as_real(x) * as_real(x), axes)));
}

// The norm is not differentiable at zero; its gradient there is defined as zero.
void gradient(const ReductionAttrs& attrs, Gradient& op) {
  Builder& build = op.build();
  const Var x = op.operand("x"), dy = with_kept_axes(attrs, op, op.upstream("y"));
  const Var y = with_kept_axes(attrs, op, op.result("y"));
  const Var is_zero = build.call("equal", {y, build.scalar(0, y)});
  op.add("x", dy * x / build.call("where", {is_zero, build.scalar(1, y), y}));
}

}  // namespace

TENON_DEFINE_OP(reduce_l2) = reduction_op("reduce_l2",
                                          "the square root of the sum of squares over `axes`",
                                          lower, gradient);

}  // namespace tenon::inline ops::reduce_l2_op
