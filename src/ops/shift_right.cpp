#include "ops/definition/elementwise.h"

namespace tenon::inline ops::shift_right_op {

TENON_DEFINE_OP(shift_right) = BinarySpec<>{
    .name = "shift_right",
    .summary = "the bits of a moved b places lower, broadcast; copies of the sign move in",
    .takes = integers,
    .value = [](Expr a, Expr b) { return apply(BinaryOp::ShiftRight, a, b); },
    .gradient = not_differentiable("it works on bits"),
};

}  // namespace tenon::inline ops::shift_right_op
