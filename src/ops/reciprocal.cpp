#include "ops/definition/elementwise.h"

namespace tenon::inline ops::reciprocal_op {

TENON_DEFINE_OP(reciprocal) = UnarySpec<>{
    .name = "reciprocal",
    .summary = "1 / x",
    .takes = floats | complexes,
    .value = [](Expr x) { return 1.0 / x; },
    .slope = [](Var, Var y) { return -(y * y); },
};

}  // namespace tenon::inline ops::reciprocal_op
