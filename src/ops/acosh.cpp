#include "ops/definition/elementwise.h"

namespace tenon::inline ops::acosh_op {

TENON_DEFINE_OP(acosh) = UnarySpec<>{
    .name = "acosh",
    .summary = "inverse hyperbolic cosine of x; NaN below one",
    .value = [](Expr x) { return apply(UnaryOp::Acosh, x); },
    .slope = [](Var x, Var) { return 1.0 / call("sqrt", {x * x - 1.0}); },
};

}  // namespace tenon::inline ops::acosh_op
