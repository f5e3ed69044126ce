#include "ops/definition/elementwise.h"

namespace tenon::inline ops::logical_or_op {

TENON_DEFINE_OP(logical_or) = BinarySpec<>{
    .name = "logical_or",
    .summary = "whether a or b is true, or both, broadcast",
    .takes = bools,
    .value = [](Expr a, Expr b) { return apply(BinaryOp::Or, a, b); },
    .gives_bool = true,
};

}  // namespace tenon::inline ops::logical_or_op
