#include "ops/definition/elementwise.h"

namespace tenon::inline ops::hard_swish_op {

TENON_DEFINE_OP(hard_swish) = UnarySpec<>{
    .name = "hard_swish",
    .summary = "x times (x / 6 + 1/2) held between 0 and 1",
    .value = [](Expr x) { return x * max(min(x / 6.0 + 0.5, 1.0), 0.0); },
    .slope =
        [](Var x, Var) {
          return choose(is_less(x, -3), 0, choose(is_greater(x, 3), 1, x / 3.0 + 0.5));
        },
};

}  // namespace tenon::inline ops::hard_swish_op
