#include "ops/definition/elementwise.h"

namespace tenon::inline ops::hard_sigmoid_op {
namespace {

struct Attrs {
  double alpha = 0.2;
  double beta = 0.5;
};

}  // namespace

TENON_DEFINE_OP(hard_sigmoid) = UnarySpec<Attrs>{
    .name = "hard_sigmoid",
    .summary = "alpha * x + beta, held between 0 and 1",
    .attrs = {{"alpha", &Attrs::alpha}, {"beta", &Attrs::beta}},
    .value = [](const Attrs& attrs,
                Expr x) { return max(min(x * attrs.alpha + attrs.beta, 1.0), 0.0); },
    .slope =
        [](const Attrs& attrs, Var, Var y) {
          return choose(is_greater(y, 0), choose(is_less(y, 1), attrs.alpha, 0, y), 0);
        },
};

}  // namespace tenon::inline ops::hard_sigmoid_op
