#include "ops/elementwise.h"

namespace tenon {

TENON_DEFINE_OP(neg) = UnarySpec<>{
    .name = "neg",
    .summary = "-x; integers wrap",
    .takes = numbers,
    .value = [](Expr x) { return -x; },
    .slope = [](Var x, Var) { return number(-1, x); },
};

}  // namespace tenon
