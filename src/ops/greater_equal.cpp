#include "ops/definition/elementwise.h"

namespace tenon::inline ops::greater_equal_op {

TENON_DEFINE_OP(greater_equal) = BinarySpec<>{
    .name = "greater_equal",
    .summary = "whether a >= b, broadcast",
    .takes = reals,
    .value = [](Expr a, Expr b) { return a >= b; },
    .gives_bool = true,
};

}  // namespace tenon::inline ops::greater_equal_op
