#include "ops/elementwise.h"

namespace tenon {

TENON_DEFINE_OP(sinh) = UnarySpec<>{
    .name = "sinh",
    .summary = "hyperbolic sine of x",
    .value = [](Expr x) { return apply(UnaryOp::Sinh, x); },
    .slope = [](Var x, Var) { return call("cosh", {x}); },
};

}  // namespace tenon
