#include "ops/definition/elementwise.h"

namespace tenon::inline ops::softplus_op {

TENON_DEFINE_OP(softplus) = UnarySpec<>{
    .name = "softplus",
    .summary = "log(1 + exp(x))",
    .value = softplus,
    .slope = [](Var x, Var) { return call("sigmoid", {x}); },
};

}  // namespace tenon::inline ops::softplus_op
