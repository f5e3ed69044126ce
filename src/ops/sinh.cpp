#include "ops/definition/elementwise.h"

namespace tenon::inline ops::sinh_op {

TENON_DEFINE_OP(sinh) = UnarySpec<>{
    .name = "sinh",
    .summary = "hyperbolic sine of x",
    .value = [](Expr x) { return apply(UnaryOp::Sinh, x); },
    .slope = [](Var x, Var) { return call("cosh", {x}); },
};

}  // namespace tenon::inline ops::sinh_op
