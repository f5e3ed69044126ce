#include "ops/definition/elementwise.h"

namespace tenon::inline ops::logical_not_op {

TENON_DEFINE_OP(logical_not) = UnarySpec<>{
    .name = "logical_not",
    .summary = "whether x is false",
    .takes = bools,
    .value = [](Expr x) { return !x; },
    .gives_bool = true,
};

}  // namespace tenon::inline ops::logical_not_op
