#include "ops/definition/elementwise.h"

namespace tenon::inline ops::selu_op {
namespace {

struct Attrs {
  double alpha = 1.67326319217681884765625;
  double gamma = 1.05070102214813232421875;
};

}  // namespace

TENON_DEFINE_OP(selu) = UnarySpec<Attrs>{
    .name = "selu",
    .summary = "gamma * x where it is positive, else gamma * alpha * (exp(x) - 1)",
    .attrs = {{"alpha", &Attrs::alpha}, {"gamma", &Attrs::gamma}},
    .value = [](const Attrs& attrs,
                Expr x) { return attrs.gamma * select(x < 0.0, attrs.alpha * (exp(x) - 1.0), x); },
    .slope =
        [](const Attrs& attrs, Var x, Var y) {
          return choose(is_less(x, 0), y + attrs.alpha * attrs.gamma, attrs.gamma);
        },
};

}  // namespace tenon::inline ops::selu_op
