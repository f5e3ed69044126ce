#include "ops/definition/elementwise.h"

namespace tenon::inline ops::relu_op {

TENON_DEFINE_OP(relu) = UnarySpec<>{
    .name = "relu",
    .summary = "x where it is positive, else 0; NaN stays NaN",
    .takes = reals,
    .value = [](Expr x) { return max(x, 0.0); },
    // Uses y, which the next node most likely keeps alive anyway.
    .slope = [](Var, Var y) { return choose(is_greater(y, 0), 1, 0, y); },
};

}  // namespace tenon::inline ops::relu_op
