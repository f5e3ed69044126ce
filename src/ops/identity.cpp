#include "ops/elementwise.h"

namespace tenon {

TENON_DEFINE_OP(identity) = UnarySpec<>{
    .name = "identity",
    .summary = "x itself",
    .takes = everything,
    .value = [](Expr x) { return x; },
    .slope = [](Var x, Var) { return number(1, x); },
    .precision = Precision::MovesOnly,
};

}  // namespace tenon
