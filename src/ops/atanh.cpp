#include "ops/definition/elementwise.h"

namespace tenon::inline ops::atanh_op {

TENON_DEFINE_OP(atanh) = UnarySpec<>{
    .name = "atanh",
    .summary = "inverse hyperbolic tangent of x",
    .value = [](Expr x) { return apply(UnaryOp::Atanh, x); },
    .slope = [](Var x, Var) { return 1.0 / (1.0 - x * x); },
};

}  // namespace tenon::inline ops::atanh_op
