#include "ops/families/reduction.h"

namespace tenon::inline ops::reduce_log_sum_op {
namespace {

void lower(const ReductionAttrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Axes axes = reduced_axes(attrs, x.rank());
  define_reduced(attrs, op, log(as_real(sum_over(x, axes))));
}

void gradient(const ReductionAttrs& attrs, Gradient& op) {
  const Var dy = with_kept_axes(attrs, op, op.upstream("y"));
  op.add("x", dy / reduce_likewise(attrs, op, "reduce_sum", op.operand("x")));
}

}  // namespace

TENON_DEFINE_OP(reduce_log_sum) = reduction_op("reduce_log_sum",
                                               "the logarithm of the sum over `axes`", lower,
                                               gradient);

}  // namespace tenon::inline ops::reduce_log_sum_op
