#include "ops/definition/elementwise.h"

namespace tenon::inline ops::less_equal_op {

TENON_DEFINE_OP(less_equal) = BinarySpec<>{
    .name = "less_equal",
    .summary = "whether a <= b, broadcast",
    .takes = reals,
    .value = [](Expr a, Expr b) { return a <= b; },
    .gives_bool = true,
};

}  // namespace tenon::inline ops::less_equal_op
