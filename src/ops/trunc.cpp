#include "ops/definition/elementwise.h"

namespace tenon::inline ops::trunc_op {

TENON_DEFINE_OP(trunc) = UnarySpec<>{
    .name = "trunc",
    .summary = "x without its fraction",
    .value = [](Expr x) { return trunc(x); },
    .slope = not_differentiable("it is flat between its steps"),
};

}  // namespace tenon::inline ops::trunc_op
