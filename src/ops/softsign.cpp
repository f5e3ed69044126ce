#include "ops/definition/elementwise.h"

namespace tenon::inline ops::softsign_op {

TENON_DEFINE_OP(softsign) = UnarySpec<>{
    .name = "softsign",
    .summary = "x / (1 + |x|)",
    .value = [](Expr x) { return x / (1.0 + abs(x)); },
    .slope =
        [](Var, Var y) {
          const Var rest = 1.0 - call("abs", {y});
          return rest * rest;
        },
};

}  // namespace tenon::inline ops::softsign_op
