#include "ops/definition/elementwise.h"

namespace tenon::exp_op {

TENON_DEFINE_OP(exp) = UnarySpec<>{
    .name = "exp",
    .summary = "e to the power of x",
    .value = [](Expr x) { return exp(x); },
    .slope = [](Var, Var y) { return y; },
};

}  // namespace tenon::exp_op
