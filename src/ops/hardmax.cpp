#include "expr/lowering.h"
#include "ops/families/along_axis.h"

namespace tenon::inline ops::hardmax_op {
namespace {

void lower(const AxisAttrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Space space(x.dims());
  const Expr position = space[normal_axis("hardmax", attrs.axis, x.rank())];
  op.define("y", cast(equal(position, reduce(Reduction::ArgMax, x, {attrs.axis})), x.dtype()));
}

}  // namespace

TENON_DEFINE_OP(hardmax) = along_axis_op("hardmax",
                                         "1 at the first largest element along `axis`, 0 elsewhere",
                                         lower,
                                         not_differentiable("it is constant but for its steps"));

}  // namespace tenon::inline ops::hardmax_op
