#include "ops/definition/elementwise.h"

namespace tenon::inline ops::bit_not_op {

TENON_DEFINE_OP(bit_not) = UnarySpec<>{
    .name = "bit_not",
    .summary = "the bits of x flipped",
    .takes = integers,
    .value = [](Expr x) { return apply(UnaryOp::BitNot, x); },
    .slope = not_differentiable("it works on bits"),
};

}  // namespace tenon::inline ops::bit_not_op
