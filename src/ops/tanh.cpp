#include "ops/definition/elementwise.h"

namespace tenon::inline ops::tanh_op {

TENON_DEFINE_OP(tanh) = UnarySpec<>{
    .name = "tanh",
    .summary = "hyperbolic tangent of x",
    .value = [](Expr x) { return tanh(x); },
    .slope = [](Var, Var y) { return 1.0 - y * y; },
};

}  // namespace tenon::inline ops::tanh_op
