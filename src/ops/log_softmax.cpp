#include "expr/lowering.h"
#include "ops/definition/gradient.h"
#include "ops/families/along_axis.h"

namespace tenon::inline ops::log_softmax_op {
namespace {

// Subtracting the maximum keeps exp() finite and cancels in the difference.
void lower(const AxisAttrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Expr below_peak = x - max_over(x, attrs.axis);
  op.define("y", below_peak - log(sum_over(exp(below_peak), attrs.axis)));
}

void gradient(const AxisAttrs& attrs, Gradient& op) {
  const Var dy = op.upstream("y");
  const Var total = op.build().call("reduce_sum", {dy}, {{"axes", Attr::Integers{attrs.axis}}});
  op.add("x", dy - op.build().call("exp", {op.result("y")}) * total);
}

}  // namespace

TENON_DEFINE_OP(log_softmax) = with_examples({"x: F a b"},
                                             along_axis_op("log_softmax",
                                                           "the logarithm of softmax along `axis`",
                                                           lower, gradient));

}  // namespace tenon::inline ops::log_softmax_op
