#include "ops/lowering.h"
#include "ops/op_spec.h"

namespace tenon {
namespace {

struct Attrs {
  std::int64_t axis = -1;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  normal_axis("hardmax", attrs.axis, in["x"].rank());
  return in["x"];
}

void lower(const Attrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Space space(x.dims());
  const Expr position = space[normal_axis("hardmax", attrs.axis, x.rank())];
  op.define("y", cast(equal(position, reduce(Reduction::ArgMax, x, {attrs.axis})), x.dtype()));
}

}  // namespace

TENON_DEFINE_OP(hardmax) = OpSpec<Attrs>{
    .name = "hardmax",
    .summary = "1 at the first largest element along `axis`, 0 elsewhere",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"axis", &Attrs::axis}},
    .infer = infer,
    .lower = lower,
    .gradient = not_differentiable("it is constant but for its steps"),
    .layout = follows_axis("axis"),
};

}  // namespace tenon
