#include "expr/lowering.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"

namespace tenon::inline ops::lp_norm_op {
namespace {

struct Attrs {
  std::int64_t axis = -1;
  std::int64_t p = 2;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  normal_axis("lp_norm", attrs.axis, in["x"].rank());
  if (attrs.p != 1 && attrs.p != 2) {
    throw Error("lp_norm: no such norm").expected("p = 1 or p = 2").got("p = ", attrs.p);
  }
  return in["x"];
}

void lower(const Attrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Expr norm = attrs.p == 1 ? sum_over(abs(x), attrs.axis) : sqrt(sum_over(x * x, attrs.axis));
  op.define("y", x / select(equal(norm, 0.0), 1.0, norm));
}

void gradient(const Attrs& attrs, Gradient& op) {
  Builder& build = op.build();
  const std::vector<Attr> axes{{"axes", Attr::Integers{attrs.axis}}};
  const Var x = op.operand("x"), y = op.result("y"), dy = op.upstream("y");
  const Var norm = build.call(attrs.p == 1 ? "reduce_l1" : "reduce_l2", {x}, axes);
  const Var is_zero = build.call("equal", {norm, build.scalar(0, x)});
  const Var divisor = build.call("where", {is_zero, build.scalar(1, x), norm});
  const Var slope = attrs.p == 1 ? build.call("sign", {x}) : y;  // derivative of the norm by x
  op.add("x", (dy - slope * build.call("reduce_sum", {dy * y}, axes)) / divisor);
}

}  // namespace

TENON_DEFINE_OP(lp_norm) = OpSpec<Attrs>{
    .name = "lp_norm",
    .summary = "x divided by its p-norm along `axis`; 0 where the norm is 0",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"axis", &Attrs::axis}, {"p", &Attrs::p}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = follows_axis("axis"),
};

}  // namespace tenon::inline ops::lp_norm_op
