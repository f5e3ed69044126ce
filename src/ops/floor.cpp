#include "ops/definition/elementwise.h"

namespace tenon::inline ops::floor_op {

TENON_DEFINE_OP(floor) = UnarySpec<>{
    .name = "floor",
    .summary = "the greatest whole number that is at most x",
    .value = [](Expr x) { return floor(x); },
    .slope = not_differentiable("it is flat between its steps"),
};

}  // namespace tenon::inline ops::floor_op
