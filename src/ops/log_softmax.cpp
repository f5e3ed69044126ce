#include "ops/gradient.h"
#include "ops/lowering.h"
#include "ops/op_spec.h"

namespace tenon {
namespace {

struct Attrs {
  std::int64_t axis = -1;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  normal_axis("log_softmax", attrs.axis, in["x"].rank());
  return in["x"];
}

// Subtracting the peak keeps exp() finite and cancels in the difference.
void lower(const Attrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Expr below_peak = x - max_over(x, attrs.axis);
  op.define("y", below_peak - log(sum_over(exp(below_peak), attrs.axis)));
}

void gradient(const Attrs& attrs, Gradient& op) {
  const Var dy = op.upstream("y");
  const Var total = op.build().call("reduce_sum", {dy}, {{"axes", Attr::Integers{attrs.axis}}});
  op.add("x", dy - op.build().call("exp", {op.result("y")}) * total);
}

}  // namespace

TENON_DEFINE_OP(log_softmax) = OpSpec<Attrs>{
    .name = "log_softmax",
    .summary = "the logarithm of softmax along `axis`",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"axis", &Attrs::axis}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = follows_axis("axis"),
    .in_place = {{"y", "x"}},
};

}  // namespace tenon
