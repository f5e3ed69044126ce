#include "ops/definition/elementwise.h"

namespace tenon::inline ops::sigmoid_op {

TENON_DEFINE_OP(sigmoid) = UnarySpec<>{
    .name = "sigmoid",
    .summary = "1 / (1 + exp(-x))",
    .value = [](Expr x) { return 1.0 / (1.0 + exp(-x)); },
    .slope = [](Var, Var y) { return y * (1.0 - y); },
};

}  // namespace tenon::inline ops::sigmoid_op
