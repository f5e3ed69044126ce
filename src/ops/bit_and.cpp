#include "ops/definition/elementwise.h"

namespace tenon::inline ops::bit_and_op {

TENON_DEFINE_OP(bit_and) = BinarySpec<>{
    .name = "bit_and",
    .summary = "the bits that a and b share, broadcast",
    .takes = integers,
    .value = [](Expr a, Expr b) { return apply(BinaryOp::And, a, b); },
    .gradient = not_differentiable("it works on bits"),
};

}  // namespace tenon::inline ops::bit_and_op
