#include "ops/definition/elementwise.h"

#include <numbers>

namespace tenon::inline ops::erf_op {

TENON_DEFINE_OP(erf) = UnarySpec<>{
    .name = "erf",
    .summary = "the error function, 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x",
    .value = [](Expr x) { return erf(x); },
    .slope = [](Var x, Var) { return call("exp", {-(x * x)}) * (2 * std::numbers::inv_sqrtpi); },
};

}  // namespace tenon::inline ops::erf_op
