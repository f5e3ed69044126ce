#include "ops/definition/elementwise.h"

namespace tenon::inline ops::abs_op {

TENON_DEFINE_OP(abs) = UnarySpec<>{
    .name = "abs",
    .summary = "|x|",
    .takes = reals,
    .value = [](Expr x) { return abs(x); },
    .slope = [](Var x, Var) { return call("sign", {x}); },
};

}  // namespace tenon::inline ops::abs_op
