#include "ops/definition/elementwise.h"

namespace tenon::inline ops::leaky_relu_op {
namespace {

struct Attrs {
  double alpha = 0.01;
};

}  // namespace

TENON_DEFINE_OP(leaky_relu) = UnarySpec<Attrs>{
    .name = "leaky_relu",
    .summary = "x where it is positive, else alpha * x",
    .attrs = {{"alpha", &Attrs::alpha}},
    .value = [](const Attrs& attrs, Expr x) { return select(x < 0.0, x * attrs.alpha, x); },
    .slope = [](const Attrs& attrs, Var x,
                Var) { return choose(is_less(x, 0), attrs.alpha, 1, x); },
};

}  // namespace tenon::inline ops::leaky_relu_op
