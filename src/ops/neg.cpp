#include "ops/definition/elementwise.h"

namespace tenon::inline ops::neg_op {

TENON_DEFINE_OP(neg) = UnarySpec<>{
    .name = "neg",
    .summary = "-x; integers wrap",
    .takes = numbers,
    .value = [](Expr x) { return -x; },
    .slope = [](Var x, Var) { return number(-1, x); },
};

}  // namespace tenon::inline ops::neg_op
