#include "ops/families/reduction.h"

namespace tenon::inline ops::reduce_l1_op {
namespace {

void lower(const ReductionAttrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Axes axes = reduced_axes(attrs, x.rank());
  define_reduced(attrs, op, sum_over(abs(x), axes));
}

void gradient(const ReductionAttrs& attrs, Gradient& op) {
  const Var dy = with_kept_axes(attrs, op, op.upstream("y"));
  op.add("x", dy * op.build().call("sign", {op.operand("x")}));
}

}  // namespace

TENON_DEFINE_OP(reduce_l1) = reduction_op("reduce_l1", "the sum of absolute values over `axes`",
                                          lower, gradient);

}  // namespace tenon::inline ops::reduce_l1_op
