#include "ops/definition/elementwise.h"

namespace tenon::inline ops::bit_xor_op {

TENON_DEFINE_OP(bit_xor) = BinarySpec<>{
    .name = "bit_xor",
    .summary = "the bits in which a and b differ, broadcast",
    .takes = integers,
    .value = [](Expr a, Expr b) { return apply(BinaryOp::Xor, a, b); },
    .gradient = not_differentiable("it works on bits"),
};

}  // namespace tenon::inline ops::bit_xor_op
