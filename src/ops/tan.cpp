#include "ops/definition/elementwise.h"

namespace tenon::inline ops::tan_op {

TENON_DEFINE_OP(tan) = UnarySpec<>{
    .name = "tan",
    .summary = "tangent of x",
    .value = [](Expr x) { return apply(UnaryOp::Tan, x); },
    .slope = [](Var, Var y) { return 1.0 + y * y; },
};

}  // namespace tenon::inline ops::tan_op
