#include "ops/definition/elementwise.h"

namespace tenon::inline ops::round_op {

TENON_DEFINE_OP(round) = UnarySpec<>{
    .name = "round",
    .summary = "the nearest whole number, halves to the even one",
    .value = [](Expr x) { return round_even(x); },
    .slope = not_differentiable("it is flat between its steps"),
};

}  // namespace tenon::inline ops::round_op
