#include "ops/definition/elementwise.h"

namespace tenon::inline ops::sin_op {

TENON_DEFINE_OP(sin) = UnarySpec<>{
    .name = "sin",
    .summary = "sine of x",
    .value = [](Expr x) { return sin(x); },
    .slope = [](Var x, Var) { return call("cos", {x}); },
};

}  // namespace tenon::inline ops::sin_op
