#include "ops/definition/elementwise.h"

namespace tenon::inline ops::asin_op {

TENON_DEFINE_OP(asin) = UnarySpec<>{
    .name = "asin",
    .summary = "the angle in [-pi/2, pi/2] whose sine is x",
    .value = [](Expr x) { return apply(UnaryOp::Asin, x); },
    .slope = [](Var x, Var) { return 1.0 / call("sqrt", {1.0 - x * x}); },
};

}  // namespace tenon::inline ops::asin_op
