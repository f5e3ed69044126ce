#include "ops/elementwise.h"

namespace tenon {

TENON_DEFINE_OP(relu) = UnarySpec<>{
    .name = "relu",
    .summary = "x where it is positive, else 0; NaN stays NaN",
    .takes = reals,
    .value = [](Expr x) { return max(x, 0.0); },
    .slope = [](Var x, Var) { return choose(is_greater(x, 0), 1, 0, x); },
};

}  // namespace tenon
