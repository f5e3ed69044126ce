#include "ops/definition/elementwise.h"

namespace tenon::inline ops::sign_op {

TENON_DEFINE_OP(sign) = UnarySpec<>{
    .name = "sign",
    .summary = "-1, 0 or 1 by the sign of x; NaN stays NaN",
    .takes = reals,
    .value = [](Expr x) { return apply(UnaryOp::Sign, x); },
    .slope = not_differentiable("it is flat between its steps"),
};

}  // namespace tenon::inline ops::sign_op
