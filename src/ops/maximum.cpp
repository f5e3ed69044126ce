#include "ops/definition/elementwise.h"

namespace tenon::inline ops::maximum_op {

TENON_DEFINE_OP(maximum) = BinarySpec<>{
    .name = "maximum",
    .summary = "the greater of a and b, broadcast; NaN if either is",
    .takes = reals,
    .value = [](Expr a, Expr b) { return max(a, b); },
    .gradient = gradient_of_extreme,
};

}  // namespace tenon::inline ops::maximum_op
