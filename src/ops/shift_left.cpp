#include "ops/definition/elementwise.h"

namespace tenon::inline ops::shift_left_op {

TENON_DEFINE_OP(shift_left) = BinarySpec<>{
    .name = "shift_left",
    .summary = "the bits of a moved b places higher, broadcast; zeros move in",
    .takes = integers,
    .value = [](Expr a, Expr b) { return apply(BinaryOp::ShiftLeft, a, b); },
    .gradient = not_differentiable("it works on bits"),
};

}  // namespace tenon::inline ops::shift_left_op
