#include "ops/definition/elementwise.h"

namespace tenon::inline ops::cos_op {

TENON_DEFINE_OP(cos) = UnarySpec<>{
    .name = "cos",
    .summary = "cosine of x",
    .value = [](Expr x) { return cos(x); },
    .slope = [](Var x, Var) { return -call("sin", {x}); },
};

}  // namespace tenon::inline ops::cos_op
