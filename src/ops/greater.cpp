#include "ops/definition/elementwise.h"

namespace tenon::inline ops::greater_op {

TENON_DEFINE_OP(greater) = BinarySpec<>{
    .name = "greater",
    .summary = "whether a > b, broadcast",
    .takes = reals,
    .value = [](Expr a, Expr b) { return a > b; },
    .gives_bool = true,
};

}  // namespace tenon::inline ops::greater_op
