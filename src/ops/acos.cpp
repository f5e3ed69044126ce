#include "ops/definition/elementwise.h"

namespace tenon::inline ops::acos_op {

TENON_DEFINE_OP(acos) = UnarySpec<>{
    .name = "acos",
    .summary = "the angle in [0, pi] whose cosine is x",
    .value = [](Expr x) { return apply(UnaryOp::Acos, x); },
    .slope = [](Var x, Var) { return -1.0 / call("sqrt", {1.0 - x * x}); },
};

}  // namespace tenon::inline ops::acos_op
