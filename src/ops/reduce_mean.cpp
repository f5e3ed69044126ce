#include "ops/families/reduction.h"

namespace tenon::inline ops::reduce_mean_op {
namespace {

void lower(const ReductionAttrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Axes axes = reduced_axes(attrs, x.rank());
  define_reduced(attrs, op, mean_over(x, axes));
}

void gradient(const ReductionAttrs& attrs, Gradient& op) {
  const Var dy = with_kept_axes(attrs, op, op.upstream("y"));
  const Var x = op.operand("x");
  const Var ones = expand_to(op.build().scalar(1, x), op.operand_type("x").dims);
  op.add("x", dy / reduce_likewise(attrs, op, "reduce_sum", ones));
}

}  // namespace

TENON_DEFINE_OP(reduce_mean) = reduction_op("reduce_mean", "the mean over `axes`", lower, gradient);

}  // namespace tenon::inline ops::reduce_mean_op
