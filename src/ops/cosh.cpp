#include "ops/definition/elementwise.h"

namespace tenon::inline ops::cosh_op {

TENON_DEFINE_OP(cosh) = UnarySpec<>{
    .name = "cosh",
    .summary = "hyperbolic cosine of x",
    .value = [](Expr x) { return apply(UnaryOp::Cosh, x); },
    .slope = [](Var x, Var) { return call("sinh", {x}); },
};

}  // namespace tenon::inline ops::cosh_op
