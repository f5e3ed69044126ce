#include "ops/families/reduction.h"

#include <limits>

namespace tenon::inline ops::reduce_log_sum_exp_op {
namespace {

// Subtracting the maximum keeps exp() finite; an infinite maximum would give NaN and is not
// subtracted.
void lower(const ReductionAttrs& attrs, Lowering& op) {
  const Expr x = as_real(op.operand("x"));
  const Axes axes = reduced_axes(attrs, x.rank());
  const Expr highest = max_over(x, axes);
  const double infinity = std::numeric_limits<double>::infinity();
  const Expr peak = select(abs(highest) < infinity, highest, 0.0);
  define_reduced(attrs, op, peak + log(sum_over(exp(x - peak), axes)));
}

void gradient(const ReductionAttrs& attrs, Gradient& op) {
  const Var dy = with_kept_axes(attrs, op, op.upstream("y"));
  const Var y = with_kept_axes(attrs, op, op.result("y"));
  op.add("x", dy * op.build().call("exp", {op.operand("x") - y}));
}

}  // namespace

TENON_DEFINE_OP(reduce_log_sum_exp) = reduction_op(
    "reduce_log_sum_exp", "the logarithm of the sum of exponentials over `axes`", lower, gradient);

}  // namespace tenon::inline ops::reduce_log_sum_exp_op
