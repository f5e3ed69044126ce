#include "ops/definition/elementwise.h"

namespace tenon::inline ops::atan_op {

TENON_DEFINE_OP(atan) = UnarySpec<>{
    .name = "atan",
    .summary = "the angle in [-pi/2, pi/2] whose tangent is x",
    .value = [](Expr x) { return apply(UnaryOp::Atan, x); },
    .slope = [](Var x, Var) { return 1.0 / (1.0 + x * x); },
};

}  // namespace tenon::inline ops::atan_op
