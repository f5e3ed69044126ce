#include "ops/definition/elementwise.h"

namespace tenon::inline ops::less_op {

TENON_DEFINE_OP(less) = BinarySpec<>{
    .name = "less",
    .summary = "whether a < b, broadcast",
    .takes = reals,
    .value = [](Expr a, Expr b) { return a < b; },
    .gives_bool = true,
};

}  // namespace tenon::inline ops::less_op
