#include "ops/definition/elementwise.h"

namespace tenon::inline ops::is_nan_op {

TENON_DEFINE_OP(is_nan) = UnarySpec<>{
    .name = "is_nan",
    .summary = "whether x is NaN",
    .value = [](Expr x) { return apply(UnaryOp::IsNan, x); },
    .gives_bool = true,
};

}  // namespace tenon::inline ops::is_nan_op
