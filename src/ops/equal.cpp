#include "ops/definition/elementwise.h"

namespace tenon::inline ops::equal_op {

TENON_DEFINE_OP(equal) = BinarySpec<>{
    .name = "equal",
    .summary = "whether a == b, broadcast",
    .takes = everything,
    .value = [](Expr a, Expr b) { return equal(a, b); },
    .gives_bool = true,
};

}  // namespace tenon::inline ops::equal_op
