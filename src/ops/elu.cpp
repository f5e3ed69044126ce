#include "ops/definition/elementwise.h"

namespace tenon::inline ops::elu_op {
namespace {

struct Attrs {
  double alpha = 1;
};

}  // namespace

TENON_DEFINE_OP(elu) = UnarySpec<Attrs>{
    .name = "elu",
    .summary = "x where it is positive, else alpha * (exp(x) - 1)",
    .attrs = {{"alpha", &Attrs::alpha}},
    .value = [](const Attrs& attrs,
                Expr x) { return select(x < 0.0, attrs.alpha * (exp(x) - 1.0), x); },
    .slope = [](const Attrs& attrs, Var x,
                Var y) { return choose(is_less(x, 0), y + attrs.alpha, 1); },
};

}  // namespace tenon::inline ops::elu_op
