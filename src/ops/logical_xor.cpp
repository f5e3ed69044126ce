#include "ops/definition/elementwise.h"

namespace tenon::inline ops::logical_xor_op {

TENON_DEFINE_OP(logical_xor) = BinarySpec<>{
    .name = "logical_xor",
    .summary = "whether one of a and b is true and the other is not, broadcast",
    .takes = bools,
    .value = [](Expr a, Expr b) { return apply(BinaryOp::Xor, a, b); },
    .gives_bool = true,
};

}  // namespace tenon::inline ops::logical_xor_op
