#include "ops/definition/elementwise.h"

namespace tenon::inline ops::exp_op {

TENON_DEFINE_OP(exp) = UnarySpec<>{
    .name = "exp",
    .summary = "e to the power of x",
    .value = [](Expr x) { return exp(x); },
    .slope = [](Var, Var y) { return y; },
};

}  // namespace tenon::inline ops::exp_op
