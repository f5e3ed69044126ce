#include "expr/lowering.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"

namespace tenon::inline ops::softmax_op {
namespace {

struct Attrs {
  std::int64_t axis = -1;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  normal_axis("softmax", attrs.axis, in["x"].rank());
  return in["x"];
}

// Subtracting the maximum keeps exp() finite and cancels in the quotient.
void lower(const Attrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Expr e = exp(x - max_over(x, attrs.axis));
  op.define("y", e / sum_over(e, attrs.axis));
}

void gradient(const Attrs& attrs, Gradient& op) {
  const Var y = op.result("y"), dy = op.upstream("y");
  const Var total = op.build().call("reduce_sum", {dy * y},
                                    {{"axes", Attr::Integers{attrs.axis}}, {"keep_axes", true}});
  op.add("x", y * (dy - total));
}

}  // namespace

TENON_DEFINE_OP(softmax) = OpSpec<Attrs>{
    .name = "softmax",
    .summary = "exp(x), scaled to sum to one along `axis`",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"axis", &Attrs::axis}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = follows_axis("axis"),
    .examples = {"x: F a b"},
};

}  // namespace tenon::inline ops::softmax_op
