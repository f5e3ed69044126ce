#include "ops/definition/elementwise.h"

namespace tenon::inline ops::asinh_op {

TENON_DEFINE_OP(asinh) = UnarySpec<>{
    .name = "asinh",
    .summary = "inverse hyperbolic sine of x",
    .value = [](Expr x) { return apply(UnaryOp::Asinh, x); },
    .slope = [](Var x, Var) { return 1.0 / call("sqrt", {x * x + 1.0}); },
};

}  // namespace tenon::inline ops::asinh_op
