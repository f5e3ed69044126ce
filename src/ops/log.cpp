#include "ops/definition/elementwise.h"

namespace tenon::inline ops::log_op {

TENON_DEFINE_OP(log) = UnarySpec<>{
    .name = "log",
    .summary = "natural logarithm of x",
    .value = [](Expr x) { return log(x); },
    .slope = [](Var x, Var) { return 1.0 / x; },
};

}  // namespace tenon::inline ops::log_op
