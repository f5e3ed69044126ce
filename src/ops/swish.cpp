#include "ops/definition/elementwise.h"

namespace tenon::inline ops::swish_op {
namespace {

struct Attrs {
  double alpha = 1;
};

}  // namespace

TENON_DEFINE_OP(swish) = UnarySpec<Attrs>{
    .name = "swish",
    .summary = "x / (1 + exp(-alpha * x))",
    .attrs = {{"alpha", &Attrs::alpha}},
    .value = [](const Attrs& attrs, Expr x) { return x / (1.0 + exp(x * -attrs.alpha)); },
    .slope =
        [](const Attrs& attrs, Var x, Var y) {
          const Var share = call("sigmoid", {attrs.alpha * x});
          return share + attrs.alpha * y * (1.0 - share);
        },
};

}  // namespace tenon::inline ops::swish_op
