#include "ops/definition/elementwise.h"

namespace tenon::inline ops::logical_and_op {

TENON_DEFINE_OP(logical_and) = BinarySpec<>{
    .name = "logical_and",
    .summary = "whether a and b are both true, broadcast",
    .takes = bools,
    .value = [](Expr a, Expr b) { return apply(BinaryOp::And, a, b); },
    .gives_bool = true,
};

}  // namespace tenon::inline ops::logical_and_op
