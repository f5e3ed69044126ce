#include "ops/definition/elementwise.h"

namespace tenon::sinh_op {

TENON_DEFINE_OP(sinh) = UnarySpec<>{
    .name = "sinh",
    .summary = "hyperbolic sine of x",
    .value = [](Expr x) { return apply(UnaryOp::Sinh, x); },
    .slope = [](Var x, Var) { return call("cosh", {x}); },
};

}  // namespace tenon::sinh_op
