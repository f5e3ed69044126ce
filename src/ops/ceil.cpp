#include "ops/definition/elementwise.h"

namespace tenon::inline ops::ceil_op {

TENON_DEFINE_OP(ceil) = UnarySpec<>{
    .name = "ceil",
    .summary = "the least whole number that is at least x",
    .value = [](Expr x) { return ceil(x); },
    .slope = not_differentiable("it is flat between its steps"),
};

}  // namespace tenon::inline ops::ceil_op
