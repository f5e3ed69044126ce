#include "ops/definition/elementwise.h"

namespace tenon::inline ops::sqrt_op {

TENON_DEFINE_OP(sqrt) = UnarySpec<>{
    .name = "sqrt",
    .summary = "square root of x; NaN below zero",
    .value = [](Expr x) { return sqrt(x); },
    .slope = [](Var, Var y) { return 0.5 / y; },
};

}  // namespace tenon::inline ops::sqrt_op
