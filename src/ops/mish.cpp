#include "ops/definition/elementwise.h"

namespace tenon::inline ops::mish_op {

TENON_DEFINE_OP(mish) = UnarySpec<>{
    .name = "mish",
    .summary = "x * tanh(log(1 + exp(x)))",
    .value = [](Expr x) { return x * tanh(softplus(x)); },
    .slope =
        [](Var x, Var) {
          const Var t = call("tanh", {call("softplus", {x})});
          return t + x * (1.0 - t * t) * call("sigmoid", {x});
        },
};

}  // namespace tenon::inline ops::mish_op
