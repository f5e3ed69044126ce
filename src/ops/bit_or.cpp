#include "ops/definition/elementwise.h"

namespace tenon::inline ops::bit_or_op {

TENON_DEFINE_OP(bit_or) = BinarySpec<>{
    .name = "bit_or",
    .summary = "the bits that a or b has, broadcast",
    .takes = integers,
    .value = [](Expr a, Expr b) { return apply(BinaryOp::Or, a, b); },
    .gradient = not_differentiable("it works on bits"),
};

}  // namespace tenon::inline ops::bit_or_op
