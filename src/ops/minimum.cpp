#include "ops/definition/elementwise.h"

namespace tenon::inline ops::minimum_op {

TENON_DEFINE_OP(minimum) = BinarySpec<>{
    .name = "minimum",
    .summary = "the lesser of a and b, broadcast; NaN if either is",
    .takes = reals,
    .value = [](Expr a, Expr b) { return min(a, b); },
    .gradient = gradient_of_extreme,
};

}  // namespace tenon::inline ops::minimum_op
